// SPDX-License-Identifier: MIT
// The run's store: names and values that all ranks see, kept by rank 0. It works like c10d's
// TCPStore, but admits only the run's processes. TCPStore listens on all addresses and accepts
// everyone, and a single byte from a stranger can block it for ever.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/settings/command_line.h"

namespace dtool::trainer {

/// The name of its door, for greetings.
inline constexpr const char* kStoreDoor = "store";

/// A request is one frame: a number that identifies the answer, a verb, and its arguments. Names
/// and values are written by `write_bytes`.
///
///   set NAME VALUE         done
///   get NAME               value VALUE, once there is one
///   add NAME NUMBER        number SUM
///   check NAME...          yes or no: all are there
///   wait NAME...           done, once all are there
///   swap NAME OLD NEW      value VALUE: the one that is there then (an absent one is empty)
///   delete NAME            yes or no: it was there
///   will NAME IF_CLOSED SECONDS IF_SILENT
///                          done: if NAME has no value, it gets IF_CLOSED when this connection
///                          ends, and IF_SILENT when it is silent for so long; the last will
///                          counts, and empty values leave nothing
///   count                  number HOW_MANY
inline constexpr std::chrono::seconds kLongestSilence{86400};

/// Writes bytes as `x` and hexadecimal digits, and reads them back. Throws std::invalid_argument.
std::string write_bytes(std::string_view bytes);
std::string read_bytes(std::string_view text);

/// Serves from its own thread until it is destroyed.
class StoreServer {
 public:
  /// `clients`: how many may connect at the same moment. Throws std::system_error, or
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
