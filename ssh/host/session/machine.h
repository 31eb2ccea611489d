// SPDX-License-Identifier: MIT
// One machine's part of a supervised run: runs the script, reports its state, and follows the
// decisions of machine 0's session. It never needs the disk, which may be full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/session/report.h"
#include "ssh/host/session/supervision.h"

namespace dtool::host {

/// The actions of a machine. The real ones act on the host; tests record them.
struct Effects {
  virtual ~Effects() = default;

  /// Starts the script for that attempt, with the places that take part (empty: all). False: dtool
  /// kill came first, and nothing may be started.
  virtual bool start_script(int attempt, const std::vector<int>& places) = 0;
  /// Waits up to `patience` for the script's end. Returns its exit code, once; nothing while it
  /// runs.
  virtual std::optional<int> wait_for_script(Time patience) = 0;
  /// Ends the run's processes here, except the session and what it needs.
  virtual void end_processes() = 0;

  /// The most time that dtool kill may take, if it has begun.
  virtual std::optional<std::chrono::seconds> find_kill() = 0;
  /// Who failed first according to the script: a rank's number, `mpirun`, or nothing.
  virtual std::string read_first_failure() = 0;
  /// That rank's own message about its failure, or nothing.
  virtual std::string read_last_words(int attempt, int rank) = 0;
  /// The number of a rank that a signal has stopped, or nothing.
  virtual std::string read_stopped_rank() = 0;
  /// The last line of this attempt's log that the program itself wrote.
  virtual std::string last_line() = 0;
  /// How long the log is, in bytes.
  virtual std::uint64_t log_bytes() = 0;
  /// How many processes the kernel has killed for lack of memory.
  virtual std::optional<std::uint64_t> count_out_of_memory_kills() = 0;

  /// Writes a line of dtool's own to the log.
  virtual void say(const std::string& line) = 0;
  /// Writes a file with these lines in the state folder.
  virtual void note(const std::string& file, const std::string& line) = 0;
  /// Records the job's end for its followers; the first call counts.
  virtual void record_end(int code) = 0;
  /// Sets the report for the coordinator.
  virtual void tell(const Report& report) = 0;
};

class Machine {
 public:
  /// Starts the first attempt.
  Machine(const Supervision& settings, Effects& effects, Time now);

  /// Takes a decision of machine 0's session.
  void take(const Decision& decision);
  /// Takes the reason why machine 0's session cannot be reached.
  void take_loss(const std::string& why);
  /// Checks the script, and does what is due.
  void turn(Time now);

  bool is_over() const { return is_over_; }
  /// Whether kill came before a start: then nothing more may be done or recorded.
  bool came_too_late() const { return came_too_late_; }
  /// The session's exit code.
  int code() const { return code_; }
  /// Whether something may become due within a second without an event.
  bool is_standing_still() const { return standing_still_until_.has_value(); }

 private:
  enum class Contact { none, made, lost };

  bool gives_way_to_kill();
  void start_attempt(const std::vector<int>& places);
  void report(Standing standing, const std::string& text, std::optional<int> rank = {});
  void look_at_script();
  void look_at_stopped_rank();
  void report_failure();
  std::string name_rank(const std::string& rank) const;
  CausePlace own_place() const;
  Decision decide_alone() const;
  void act_alone();
  void obey();
  void begin(const Decision& decision);
  void stop();
  void set_attempt(int attempt);
  void finish(const std::string& cause, const std::optional<CausePlace>& place = {});
  std::string ordinal() const;

  const Supervision settings_;
  Effects& effects_;
  Time now_;
  Time began_;
  int attempt_ = 0;
  bool runs_ = false;         ///< the script
  bool was_stopped_ = false;  ///< the script, by this session
  int code_ = 0;
  Standing standing_ = Standing::running;
  std::string stopped_rank_ = {};
  std::string cause_ = {};
  std::optional<int> failed_rank_ = {};  ///< the rank of the cause
  Time failed_at_{};
  std::optional<std::uint64_t> kills_before_ = {};
  std::optional<Decision> decision_ = {};
  bool is_obeyed_ = true;
  Contact contact_ = Contact::none;
  std::string loss_ = {};  ///< why machine 0's session cannot be reached
  bool is_over_ = false;
  bool came_too_late_ = false;
  bool gave_way_ = false;
  std::optional<Time> standing_still_until_ = {};
};

}  // namespace dtool::host
