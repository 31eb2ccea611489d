// All that crosses between dtool and dtool-host, its program on the hosts: one request or more on
// standard input, the replies in the same order on standard output. Both ends compile this header;
// docs/protocol.md is about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtool::host {

/// What a frame holds. A number keeps its meaning for ever.
enum class Kind : std::uint16_t {
  fault = 1,
  kill_request = 2,
  kill_reply = 3,
};

/// The largest body that a frame of that kind may have, in bytes; 0: there is no such kind.
constexpr std::uint32_t longest_body(Kind kind) {
  constexpr std::uint32_t kMebibyte = 1U << 20U;
  switch (kind) {
    case Kind::fault:
      return 64U << 10U;
    case Kind::kill_request:
      return 4 * kMebibyte;
    case Kind::kill_reply:
      return 4 * kMebibyte;
  }
  return 0;
}

/// Instead of a reply: why there is none.
struct Fault {
  static constexpr Kind kKind = Kind::fault;
  std::string sentence;

  void fields(auto visit) { visit(sentence); }
};

/// End all that belongs to a run here, and look again.
struct KillRequest {
  static constexpr Kind kKind = Kind::kill_request;
  std::string run_id;                 ///< empty: sessions alone, as AllenAct's killfiles name them
  std::vector<std::string> sessions;  ///< names of screen sessions
  std::vector<std::string> state_folders;  ///< marked as killed first; `~/` is the home folder
  std::int64_t grace_ms = 5000;            ///< between TERM and KILL

  void fields(auto visit) { visit(run_id, sessions, state_folders, grace_ms); }
};

struct KillReply {
  static constexpr Kind kKind = Kind::kill_reply;
  std::int64_t ended = 0;           ///< processes that were there and are gone
  std::int64_t forced = 0;          ///< of them, those that TERM did not end
  std::vector<std::string> left;    ///< `pid command` of processes that are still there
  std::string cancelled;            ///< what a scheduler had of it and has no more: `job 12`
  std::string job_left;             ///< why a scheduler may still have some; empty: it has none
  std::string vouched_for;          ///< why nothing can be left on other hosts either; or empty
  std::string host;                 ///< who the host is, as killfiles::parse_identity reads it
  std::string no_folder;            ///< the run's folder, where it is not there; or empty
  std::string unmarked;             ///< a state folder that did not take the mark; or empty
  std::vector<std::string> unseen;  ///< what may be the run's work and cannot be told to be

  void fields(auto visit) {
    visit(ended, forced, left, cancelled, job_left, vouched_for, host, no_folder, unmarked, unseen);
  }
};

}  // namespace dtool::host
