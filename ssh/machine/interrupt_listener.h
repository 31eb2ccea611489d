// SPDX-License-Identifier: MIT
// Receives the signals of ssh/machine/interrupts.h in an event loop.
#pragma once

#include <functional>

#include "ssh/machine/reactor.h"

namespace dtool::ssh {

enum class Asked {
  to_stop,   ///< the first Ctrl-C: begin nothing more
  to_leave,  ///< a second one, TERM or HUP: end within a second
};

/// Listens while it lives, in the event loop of `reactor`.
class Interrupts {
 public:
  Interrupts(Reactor& reactor, std::function<void(Asked)> on_asked);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Handles signals that came while no loop ran.
  void look() { hear(); }

  /// Makes no more calls.
  void cancel();

 private:
  void listen();
  void hear();

  std::function<void(Asked)> on_asked_;
  asio::posix::stream_descriptor descriptor_;
  int stops_heard_;
  int leaves_heard_;
  bool is_listening_ = true;
};

}  // namespace dtool::ssh
