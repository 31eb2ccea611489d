// SPDX-License-Identifier: MIT
// What the machines of a run report to machine 0, and what machine 0 decides. Each report and each
// decision is complete, so only the newest one counts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/explaining_line.h"

namespace dtool::host {

/// A point in time: how long this host has been up. Setting the clock does not change it.
using Time = std::chrono::milliseconds;

Time time_since_boot();

/// The state of a machine's part of an attempt.
enum class Standing : std::uint8_t {
  running,
  ended,     ///< its script ended with exit code 0
  failed,    ///< its script ended with another exit code, or its session was killed
  mistaken,  ///< it failed by a user's mistake: another attempt would end the same way
  followed,  ///< it failed because of another machine: its process lost its peer there
  stopped,   ///< it was ended by machine 0's decision
  left_out,  ///< this attempt runs without this machine
  gone,      ///< its session ends; with a text: the session gave up
};

/// Whether the script failed.
inline bool has_failed(Standing standing) {
  return standing == Standing::failed || standing == Standing::mistaken ||
         standing == Standing::followed;
}

struct Report {
  int attempt = 0;  ///< the attempt's number, counted from 0
  Standing standing = Standing::running;
  int code = 0;           ///< the script's exit code
  std::string text = {};  ///< the reason; with `running`: the process that is stopped, if any
  std::optional<int> rank = {};  ///< the rank that failed first, or is stopped

  void fields(auto visit) { visit(attempt, standing, code, text, rank); }
  bool operator==(const Report&) const = default;
};

enum class Verb : std::uint8_t {
  run,     ///< begin this attempt with the machines at `places`
  gather,  ///< end this attempt, which has failed, and report that: another one follows
  end,     ///< end for good: the run has failed
  done,    ///< end: everything is done
  finish,  ///< end what still runs: the machine whose end is the run's has ended well
};

struct Decision {
  int attempt = 0;
  Verb verb = Verb::run;
  std::vector<int> places = {};
  std::string text = {};                       ///< the cause, with `gather` and `end`
  std::optional<CausePlace> cause_place = {};  ///< the place of the cause, if it is known

  void fields(auto visit) { visit(attempt, verb, places, text, cause_place); }
  bool operator==(const Decision&) const = default;
};

/// Machine 0's answer to each report; also sent unasked with a new decision.
struct Answer {
  std::uint64_t taken = 0;  ///< how many reports it has received on this connection
  std::optional<Decision> decision = std::nullopt;  ///< nothing: no change

  void fields(auto visit) { visit(taken, decision); }
};

/// Limits of message sizes, in bytes.
inline constexpr std::size_t kLongestReport = 2048;
inline constexpr std::size_t kLongestAnswer = 16U << 20U;

std::string to_bytes(const Report& report);
std::string to_bytes(const Answer& answer);

/// Both throw BadMessage if the bytes are malformed, or name a place that no machine has.
Report parse_report(std::string_view bytes);
Answer parse_answer(std::string_view bytes, int places);

/// The form that other machines accept: printable ASCII, at most 1500 characters, `?` in place of
/// others.
std::string in_ascii(std::string_view text);

}  // namespace dtool::host
