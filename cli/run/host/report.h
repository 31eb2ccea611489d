// What the machines of a run tell machine 0 of themselves, and what machine 0 decides. Each report
// and each decision says all there is to know, so the newest one alone counts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// A point in time: how long this host had been up. A clock that is set meanwhile does not count.
using Time = std::chrono::milliseconds;

Time time_since_boot();

/// How a machine's part of an attempt stands.
enum class Standing : std::uint8_t {
  running,
  ended,     ///< its script ended with exit code 0
  failed,    ///< its script ended with another one, or its session was killed
  mistaken,  ///< the same by a user's mistake: another attempt would end the same
  followed,  ///< the same because of another machine: its process lost one there
  stopped,   ///< it was ended, as machine 0 had decided
  left_out,  ///< this attempt goes without this machine
  gone,      ///< its session ends; with a text: it gave up by itself
};

/// Whether the script failed.
inline bool has_failed(Standing standing) {
  return standing == Standing::failed || standing == Standing::mistaken ||
         standing == Standing::followed;
}

struct Report {
  int attempt = 0;  ///< from 0
  Standing standing = Standing::running;
  int code = 0;           ///< the script's exit code
  std::string text = {};  ///< why; with `running`: which process is stopped, if one is

  bool operator==(const Report&) const = default;
};

enum class Verb : std::uint8_t {
  run,     ///< begin this attempt, with the machines at `places`
  gather,  ///< end this attempt, since it has failed, and say so: another one follows
  end,     ///< end for good: the run has failed
  done,    ///< end: all is done
};

struct Decision {
  int attempt = 0;
  Verb verb = Verb::run;
  std::vector<int> places = {};
  std::string text = {};  ///< the cause, with `gather` and `end`

  bool operator==(const Decision&) const = default;
};

/// What machine 0 answers to each report, and tells unasked when there is a new decision.
struct Answer {
  std::uint64_t taken = 0;  ///< how many reports it has taken on this connection
  std::optional<Decision> decision = std::nullopt;  ///< nothing: the one it told before
};

/// Bounds of what crosses, in bytes.
inline constexpr std::size_t kLongestReport = 2048;
inline constexpr std::size_t kLongestAnswer = 16U << 20U;

std::string to_bytes(const Report& report);
std::string to_bytes(const Answer& answer);

/// Both throw BadMessage if the bytes are anything else, or name a place of no machine.
Report parse_report(std::string_view bytes);
Answer parse_answer(std::string_view bytes, int places);

/// As other machines take it: printable ASCII, at most 1500 characters, `?` in place of the others.
std::string in_ascii(std::string_view text);

}  // namespace dtool::host
