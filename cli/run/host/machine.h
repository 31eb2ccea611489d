// One machine's part of a supervised run: it runs the script, reports how that goes, and obeys what
// machine 0's session decides. Nothing of it needs the disk, which may be full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/host/report.h"
#include "cli/run/host/supervision.h"

namespace dtool::host {

/// What a machine does beyond deciding. Real ones act on the host; tests record.
struct Effects {
  virtual ~Effects() = default;

  /// Starts the script for that attempt, with the places that take part in it; none: all. False:
  /// dtool kill came first, and nothing may be started any more.
  virtual bool start_script(int attempt, const std::vector<int>& places) = 0;
  /// Waits up to `patience` for the script's end. Its exit code, once; nothing while it runs.
  virtual std::optional<int> wait_for_script(Time patience) = 0;
  /// Ends what the run has here, but for its session and what that needs.
  virtual void end_processes() = 0;

  /// How long dtool kill may take at most, where it has begun.
  virtual std::optional<std::chrono::seconds> find_kill() = 0;
  /// What the script left of who failed first: a rank's number, `mpirun`, or nothing.
  virtual std::string read_first_failure() = 0;
  /// The last line of this attempt's log that says something of its own.
  virtual std::string last_line() = 0;
  /// How often the kernel has ended a process for want of memory.
  virtual std::optional<std::uint64_t> count_out_of_memory_kills() = 0;

  /// A line of dtool's own in the log.
  virtual void say(const std::string& line) = 0;
  /// A file in the state folder, with one line.
  virtual void note(const std::string& file, const std::string& line) = 0;
  /// The job's end, for those who follow it; the first one counts.
  virtual void record_end(int code) = 0;
  /// What the coordinator is to know from now on.
  virtual void tell(const Report& report) = 0;
};

class Machine {
 public:
  /// Starts the first attempt.
  Machine(const Supervision& settings, Effects& effects, Time now);

  /// What machine 0's session has decided.
  void take(const Decision& decision);
  /// Why machine 0's session cannot be heard.
  void take_loss(const std::string& why);
  /// Looks at the script, and does what is to be done.
  void turn(Time now);

  bool is_over() const { return is_over_; }
  /// Whether kill came before a start: then nothing more may be done or recorded.
  bool came_too_late() const { return came_too_late_; }
  /// What the session exits with.
  int code() const { return code_; }
  /// Whether something may be due within a second that no event announces.
  bool is_standing_still() const { return standing_still_until_.has_value(); }

 private:
  enum class Contact { none, made, lost };

  bool gives_way_to_kill();
  void start_attempt(const std::vector<int>& places);
  void report(Standing standing, const std::string& text);
  void look_at_script();
  std::string find_cause();
  void act_alone();
  void obey();
  void begin(const Decision& decision);
  void stop();
  void set_attempt(int attempt);
  void finish(const std::string& cause);
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
  std::string cause_ = {};
  Time failed_at_{};
  std::optional<std::uint64_t> kills_before_ = {};
  std::optional<Decision> decision_ = {};
  bool is_obeyed_ = true;
  Contact contact_ = Contact::none;
  bool is_over_ = false;
  bool came_too_late_ = false;
  bool gave_way_ = false;
  std::optional<Time> standing_still_until_ = {};
};

}  // namespace dtool::host
