// SPDX-License-Identifier: MIT
#include "ssh/host/answers/followed_job.h"

#include <chrono>
#include <utility>

#include "ssh/host/files.h"
#include "ssh/host/identity.h"
#include "ssh/host/own_program.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/scheduled_job.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};
constexpr int kLooksAtEnd = 10;
constexpr int kTerminated = 143;  // 128 + SIGTERM

}  // namespace

FollowedJob::FollowedJob(std::string state)
    : state_(std::move(state)), leader_(read_job_files(state_).leader) {
  if (has_probe(state_))
    probe_ =
        std::make_unique<Child>(std::vector{own_path(), std::string("await_job"), state_}, state_);
}

bool FollowedJob::runs() {
  if (probe_ != nullptr) return probe_->is_running();
  if (!leader_ || exists(state_ + "/exit_code")) return false;
  return find_leader(*leader_).has_value();
}

bool FollowedJob::is_elsewhere() const {
  const std::string recorded = read_line(state_ + "/host");
  if (recorded.empty() || probe_ != nullptr) return false;
  const std::string found = identify_host();
  std::string_view one = recorded;
  std::string_view other = found;
  const std::string_view recorded_id = cut_word(one), recorded_name = cut_word(one),
                         recorded_boot = cut_word(one), recorded_space = cut_word(one);
  const std::string_view id = cut_word(other), name = cut_word(other), boot = cut_word(other),
                         space = cut_word(other);
  if (boot == recorded_boot) return space != recorded_space;
  return id == "-" || id != recorded_id || name != recorded_name;
}

std::string FollowedJob::became() {
  if (probe_ == nullptr) return exists(state_ + "/process") ? "" : "killed";
  const std::string said = probe_->output();
  return said.substr(0, said.find('\n'));
}

LogEnd FollowedJob::wait_for_end() {
  for (int i = 0; i < kLooksAtEnd; ++i) {
    if (exists(state_ + "/exit_code")) {
      const auto code = parse_number<int>(read_line(state_ + "/exit_code"));
      return {exists(state_ + "/stopped") ? "stopped" : "exited", code.value_or(1)};
    }
    if (is_elsewhere()) return {"unproven", 1};
    // kill leaves its mark, then tells a scheduler, then takes the folder away.
    if (exists(state_ + "/killed") || !is_folder(state_)) return {"killed", kTerminated};
    pause(kBetweenLooks);
  }
  const std::string state = became();
  if (state == "killed") return {state, kTerminated};
  return {state.empty() ? "lost" : state, 1};
}

}  // namespace dtool::host
