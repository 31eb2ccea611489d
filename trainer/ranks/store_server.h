// The run's store: names and values that all ranks see, kept by rank 0. It is c10d's TCPStore in
// what it does, and not in whom it lets in: TCPStore listens at all addresses, hears whoever comes,
// and one byte of a stranger's keeps it from everybody else for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/launch/endpoint.h"

namespace dtool::trainer {

/// The name of its door, for greetings.
inline constexpr const char* kStoreDoor = "store";

/// A request is one line: a number by which the answer is known, a verb, and what it is about.
/// Names and values are written by `write_bytes`.
///
///   set NAME VALUE         done
///   get NAME               value VALUE, once there is one
///   add NAME NUMBER        number SUM
///   check NAME...          yes or no: all are there
///   wait NAME...           done, once all are there
///   swap NAME OLD NEW      value VALUE: the one that is there then (an absent one is empty)
///   delete NAME            yes or no: it was there
///   count                  number HOW_MANY
inline constexpr std::size_t kLongestRequest = std::size_t{16} << 20;

/// `x` and hexadecimal digits, and back. Throws std::invalid_argument.
std::string write_bytes(std::string_view bytes);
std::string read_bytes(std::string_view text);

/// Serves from a thread of its own until it is destroyed.
class StoreServer {
 public:
  /// `clients`: how many may come at the same moment. Throws std::system_error, or
  /// std::runtime_error, if it cannot listen there.
  StoreServer(const Endpoint& endpoint, std::size_t clients);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

 private:
  class Serving;
  std::unique_ptr<Serving> serving_;
};

}  // namespace dtool::trainer
