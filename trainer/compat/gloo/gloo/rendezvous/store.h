// SPDX-License-Identifier: MIT
// Stands in for gloo's header, so that c10d/ProcessGroupGloo.hpp can declare a class derived from
// this one. See context.h.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gloo::rendezvous {

/// Only LibTorch, which knows the real class, can make one: this constructor is not defined.
class Store {
  struct OnlyDeclared;

 public:
  explicit Store(OnlyDeclared* = nullptr);
  virtual ~Store();
  virtual void set(const std::string&, const std::vector<char>&) = 0;
  virtual std::vector<char> get(const std::string&) = 0;
  virtual void wait(const std::vector<std::string>&) = 0;
  virtual void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) = 0;
};

}  // namespace gloo::rendezvous
