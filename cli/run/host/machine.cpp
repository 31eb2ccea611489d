#include "cli/run/host/machine.h"

#include <string.h>

#include <algorithm>

#include "ssh/host/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr int kNotEnded = 143;  // the script, where this session ended it or never started it
constexpr int kKilled = 137;
constexpr std::size_t kLongestCause = 1000;
// The bundled trainer learns of a failure by itself, and has the better words.
constexpr Time kForTrainer = 5s;
constexpr Time kForDecision = 10s;  // after a failure, where machine 0's session was never heard
constexpr Time kForContact = 120s;  // after a good end, likewise
constexpr std::string_view kTrainerSays = "dtool-trainer: ";

std::string describe_end(int code) {
  // ::sigabbrev_np() says `KILL` where strsignal() says `Killed`.
  const char* signal = code > 128 ? ::sigabbrev_np(code - 128) : nullptr;
  if (signal == nullptr) return "ended with exit code " + std::to_string(code);
  return "was killed by signal " + std::to_string(code - 128) + " (" + signal + ")";
}

}  // namespace

Machine::Machine(const Supervision& settings, Effects& effects, Time now)
    : settings_(settings), effects_(effects), now_(now), began_(now) {
  start_attempt({});
}

/// People count from 1.
std::string Machine::ordinal() const {
  return std::to_string(attempt_ + 1) + " of " + std::to_string(settings_.max_restarts + 1);
}

// Once dtool kill has begun, it ends what is here, this too. Until then nothing may be told, ended
// or started: the programs have the grace that its user gave them. A kill that was itself cut off
// is not waited for longer than it may take.
bool Machine::gives_way_to_kill() {
  if (gave_way_) return false;
  if (!standing_still_until_) {
    const auto limit = effects_.find_kill();
    if (!limit) return false;
    standing_still_until_ = now_ + *limit;
  }
  if (now_ < *standing_still_until_) return true;
  gave_way_ = true;
  standing_still_until_.reset();
  return false;
}

void Machine::start_attempt(const std::vector<int>& places) {
  kills_before_ = effects_.count_out_of_memory_kills();
  if (!effects_.start_script(attempt_, places)) {
    code_ = kNotEnded;
    came_too_late_ = is_over_ = true;
    return;
  }
  runs_ = true;
  was_stopped_ = false;
  report(Standing::running, {});
}

void Machine::report(Standing standing, const std::string& text) {
  standing_ = standing;
  const int code = standing == Standing::running || standing == Standing::ended ? 0 : code_;
  effects_.tell({attempt_, standing, code, in_ascii(text)});
}

void Machine::look_at_script() {
  // Reaped only where it may be told: else its end is found again later.
  if (!runs_ || gives_way_to_kill()) return;
  const auto code = effects_.wait_for_script(0s);
  if (!code) return;
  code_ = *code;
  runs_ = false;
  if (code_ == 0) {
    // Where nothing can be started again, that was this machine's end.
    if (settings_.max_restarts == 0) effects_.record_end(0);
    report(Standing::ended, {});
  } else {
    cause_ = find_cause();
    failed_at_ = now_;
    report(Standing::failed, cause_);
  }
}

/// Why the script failed, in one line.
std::string Machine::find_cause() {
  std::string who = effects_.read_first_failure();
  if (who.empty()) who = "the script";
  if (parse_number<int>(who)) who.insert(0, "rank ");
  std::string what = describe_end(code_);
  if (code_ == kKilled && effects_.count_out_of_memory_kills() != kills_before_)
    what += ": the kernel ran out of memory";
  std::string cause =
      who + " on machine " + std::to_string(settings_.place) + " (" + settings_.host + ") " + what;
  const std::string last = effects_.last_line();
  if (settings_.is_trainer == IsTrainer::yes) {
    if (last.starts_with(kTrainerSays)) cause = last.substr(kTrainerSays.size());
  } else if (!last.empty()) {
    cause += ": " + last;
  }
  return cause.substr(0, kLongestCause);
}

/// Ends what the run has here, but for this session and its helpers.
void Machine::stop() {
  std::optional<int> code;
  if (runs_) {
    code = effects_.wait_for_script(settings_.is_trainer == IsTrainer::yes ? kForTrainer : 0s);
    was_stopped_ = was_stopped_ || !code;
  }
  effects_.end_processes();
  if (!runs_) return;
  if (!code) code = effects_.wait_for_script(10s);
  code_ = code.value_or(kKilled);
  runs_ = false;
}

/// The run is over, with a text on why it failed, or none.
void Machine::finish(const std::string& cause) {
  is_over_ = true;
  if (!cause.empty()) {
    effects_.note("cause", cause);
    // The bundled trainer has said it already.
    if (effects_.last_line() != std::string(kTrainerSays) + cause)
      effects_.say("the run failed: " + cause);
  }
  if (was_stopped_) effects_.note("stopped", {});
  effects_.record_end(code_);
  report(Standing::gone, cause);
}

void Machine::set_attempt(int attempt) {
  attempt_ = attempt;
  effects_.note("attempt", std::to_string(attempt));
}

void Machine::begin(const Decision& decision) {
  if (runs_) stop();
  set_attempt(decision.attempt);
  if (std::ranges::find(decision.places, settings_.place) != decision.places.end()) {
    effects_.say("attempt " + ordinal() + " begins");
    start_attempt(decision.places);
    return;
  }
  code_ = kNotEnded;
  was_stopped_ = true;
  effects_.say("attempt " + ordinal() + " begins without this machine, which did not answer");
  report(Standing::left_out, {});
}

void Machine::obey() {
  if (is_obeyed_ || is_over_ || gives_way_to_kill()) return;
  is_obeyed_ = true;
  const Decision decision = *decision_;
  if (decision.verb == Verb::run) {
    if (decision.attempt > attempt_) begin(decision);
    return;
  }
  // An attempt that ended before this machine had begun it.
  if (decision.attempt > attempt_) set_attempt(decision.attempt);
  switch (decision.verb) {
    case Verb::run:
      break;
    case Verb::gather:
      if (decision.attempt != attempt_) break;
      stop();
      effects_.say("attempt " + ordinal() + " failed: " + decision.text);
      report(Standing::stopped, {});
      break;
    case Verb::end:
      stop();
      finish(decision.text);
      break;
    case Verb::done:
      // Nobody waits for a machine that was heard too late; it ends as its script does.
      if (runs_) {
        contact_ = Contact::none;
      } else {
        finish({});
      }
      break;
  }
}

void Machine::take(const Decision& decision) {
  if (settings_.place != 0 && contact_ != Contact::made) {
    contact_ = Contact::made;
    effects_.note("supervision", "ok");
  }
  if (decision_ == decision) return;
  decision_ = decision;
  is_obeyed_ = false;
}

void Machine::take_loss(const std::string& why) {
  effects_.note("supervision", why);
  if (contact_ != Contact::made) return;
  // The run goes on, or ends, without a coordinator.
  contact_ = Contact::lost;
  is_obeyed_ = false;
  decision_ = standing_ == Standing::ended ? Decision{attempt_, Verb::done, {}, {}}
                                           : Decision{attempt_, Verb::end, {}, in_ascii(why)};
}

/// Where nobody is there to decide.
void Machine::act_alone() {
  if (settings_.place == 0 || contact_ == Contact::made || is_over_) return;
  if (standing_ == Standing::failed && now_ - failed_at_ > kForDecision) finish(cause_);
  if (standing_ == Standing::ended && now_ - began_ > kForContact) finish({});
}

void Machine::turn(Time now) {
  now_ = now;
  if (is_over_) return;
  look_at_script();
  act_alone();
  obey();
}

}  // namespace dtool::host
