// SPDX-License-Identifier: MIT
#include "ssh/host/session/machine.h"

#include <algorithm>

#include "ssh/host/child.h"
#include "ssh/host/explaining_line.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/last_words.h"
#include "ssh/wire/run.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr int kNotEnded = 143;  // the code if this session ended the script or never started it
constexpr std::size_t kMostOfACause = 1000;
// The wait after a failure, where machine 0's session was never heard.
constexpr Time kForDecision = 10s;
// The time limit after a good end, where machine 0's session was never heard.
constexpr Time kForContact = 120s;

}  // namespace

Machine::Machine(const Supervision& settings, Effects& effects, Time now)
    : settings_(settings), effects_(effects), now_(now), began_(now) {
  start_attempt({});
}

/// People count from 1.
std::string Machine::ordinal() const {
  return std::to_string(attempt_ + 1) + " of " + std::to_string(settings_.max_restarts + 1);
}

// Once dtool kill has begun, it will end this process, too. Until then nothing may be reported,
// ended or started: the programs have the grace period that the user gave them. A kill that was cut
// off is not waited for longer than it may take.
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
  stopped_rank_.clear();
  report(Standing::running, {});
}

void Machine::report(Standing standing, const std::string& text, std::optional<int> rank) {
  standing_ = standing;
  const int code = standing == Standing::running || standing == Standing::ended ? 0 : code_;
  effects_.tell({attempt_, standing, code, in_ascii(text), rank});
}

void Machine::look_at_script() {
  // The script is reaped only if its end may be reported; else the end is found again later.
  if (!runs_ || gives_way_to_kill()) return;
  const auto code = effects_.wait_for_script(0s);
  if (!code) return;
  code_ = *code;
  runs_ = false;
  if (code_ == 0) {
    // Without restarts, that was this machine's end.
    if (settings_.max_restarts == 0) effects_.record_end(0);
    report(Standing::ended, {});
  } else {
    report_failure();
  }
}

std::string Machine::name_rank(const std::string& rank) const {
  return (parse_number<int>(rank) ? "rank " + rank : rank) + " on machine " +
         std::to_string(settings_.place) + " (" + settings_.host + ")";
}

/// Tells why the script failed, in one line.
void Machine::report_failure() {
  std::string first = effects_.read_first_failure();
  const auto rank = parse_number<int>(first);
  const bool is_own_process = first.empty() || first.starts_with(kOwnProcess);
  if (is_own_process && code_ != kKilled) first = "the script";
  if (first.empty()) first = kOwnProcess;
  // The log has no word of dtool's own process.
  const bool is_mute = is_own_process && code_ == kKilled;
  const RankEnd end{name_rank(first), code_, rank ? effects_.read_last_words(attempt_, *rank) : "",
                    is_mute ? "" : effects_.last_line()};
  Meaning meaning = meaning_of(end);
  const bool ran_out_of_memory =
      code_ == kKilled && effects_.count_out_of_memory_kills() != kills_before_;
  cause_ = describe(end, ran_out_of_memory ? "the kernel ran out of memory" : "");
  cause_.resize(std::min(cause_.size(), kMostOfACause));
  failed_rank_ = rank;
  failed_at_ = now_;
  if (meaning == Meaning::aftermath && !stopped_rank_.empty()) {
    meaning = Meaning::failure;
    cause_ = name_rank(stopped_rank_) + " is stopped";
    failed_rank_ = parse_number<int>(stopped_rank_);
  }
  if (meaning == Meaning::aftermath) was_stopped_ = true;
  report(meaning == Meaning::mistake     ? Standing::mistaken
         : meaning == Meaning::aftermath ? Standing::followed
                                         : Standing::failed,
         cause_, failed_rank_);
}

/// Others may soon wait for it in vain.
void Machine::look_at_stopped_rank() {
  const std::string rank = runs_ ? effects_.read_stopped_rank() : "";
  if (rank == stopped_rank_) return;
  stopped_rank_ = rank;
  if (runs_)
    report(Standing::running, rank.empty() ? "" : name_rank(rank) + " is stopped",
           parse_number<int>(rank));
}

/// Ends what the run has here, but for this session and its helpers.
void Machine::stop() {
  std::optional<int> code;
  if (runs_) {
    code = effects_.wait_for_script(0s);
    was_stopped_ = was_stopped_ || !code;
  }
  effects_.end_processes();
  if (!runs_) return;
  if (!code) code = effects_.wait_for_script(10s);
  code_ = code.value_or(kKilled);
  runs_ = false;
}

/// The run is over, with a text on why it failed, or none.
void Machine::finish(const std::string& cause, const std::optional<CausePlace>& place) {
  is_over_ = true;
  if (!cause.empty()) {
    if (place) effects_.note(kCausePlaceFile, to_line(*place));
    effects_.note("cause", cause);
    effects_.say(std::string(kRunFailed) + cause);
  }
  const bool is_here = place && place->machine == settings_.place;
  // One that seemed to follow from another's failure is the cause if there was no other.
  if (was_stopped_ && !(is_here && has_failed(standing_))) effects_.note("stopped", {});
  effects_.record_end(code_);
  report(Standing::gone, cause, is_here ? place->rank : std::nullopt);
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
  const Decision decision = contact_ == Contact::lost ? decide_alone() : *decision_;
  if (decision.verb == Verb::run) {
    if (decision.attempt > attempt_) begin(decision);
    return;
  }
  // An attempt that ended before this machine had begun it, or that ran without it.
  const bool is_later = decision.attempt > attempt_;
  if (is_later) set_attempt(decision.attempt);
  switch (decision.verb) {
    case Verb::run:
      break;
    case Verb::gather:
      if (decision.attempt != attempt_) break;
      stop();
      effects_.note(kEarlierFailureFile,
                    to_text({attempt_, effects_.log_bytes(), decision.cause_place, decision.text}));
      effects_.say("attempt " + ordinal() + " failed: " + decision.text);
      report(Standing::stopped, {});
      break;
    case Verb::end:
      stop();
      finish(decision.text, decision.cause_place);
      break;
    case Verb::done:
      // Where this machine was heard too late, the others do not wait for it; it ends as its script
      // does. A script of an earlier attempt would wait for the others for ever.
      if (runs_ && !is_later) {
        contact_ = Contact::none;
      } else {
        if (runs_) stop();
        finish({});
      }
      break;
    case Verb::finish:
      stop();
      was_stopped_ = false;
      code_ = 0;
      finish({});
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
  contact_ = Contact::lost;
  loss_ = why;
  is_obeyed_ = false;
}

/// The run goes on, or ends, without a coordinator. Asked once the script has been looked at, since
/// a kill that was cut off may have hidden its end.
Decision Machine::decide_alone() const {
  const bool is_cause = standing_ == Standing::failed || standing_ == Standing::mistaken;
  if (standing_ == Standing::ended) return {attempt_, Verb::done};
  if (is_cause) return {attempt_, Verb::end, {}, in_ascii(cause_), own_place()};
  return {attempt_, Verb::end, {}, in_ascii(loss_)};
}

/// Of its own failure.
CausePlace Machine::own_place() const {
  return {settings_.place, failed_rank_};
}

/// Acts if machine 0's session cannot be reached.
void Machine::act_alone() {
  if (settings_.place == 0 || contact_ == Contact::made || is_over_) return;
  if (has_failed(standing_) && now_ - failed_at_ > kForDecision) {
    stop();
    finish(cause_, own_place());
  }
  if (standing_ == Standing::ended && now_ - began_ > kForContact) finish({});
}

void Machine::turn(Time now) {
  now_ = now;
  if (is_over_) return;
  look_at_script();
  look_at_stopped_rank();
  act_alone();
  obey();
}

}  // namespace dtool::host
