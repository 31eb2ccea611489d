// SPDX-License-Identifier: MIT
#include "ssh/screen_job.h"

#include <fmt/format.h>

#include <variant>

#include "ssh/quote.h"
#include "ssh/remote.h"
#include "ssh/script.h"
#include "ssh/scripts.h"
#include "ssh/wire/run.h"

namespace dtool::ssh {
Command start_command(const ScreenJob& job, OldLog old_log) {
  host::StartRequest request;
  request.run_id = job.run_id;
  request.session = job.session;
  request.state_folder = job.state_folder;
  request.log = job.log;
  request.has_fresh_log = old_log == OldLog::replace;
  request.is_told = job.beginning == Beginning::told;
  request.expected_host = job.host;
  if (!job.host.empty()) request.files.push_back({"host", job.host + "\n"});
  for (const auto& [name, content] : job.files) request.files.push_back({name, content});
  request.files.push_back({"script", job.script});
  request.begin = {job.begin};
  return ask_host(request);
}

namespace {

/// The reply, or why there is none.
std::variant<host::StartReply, std::string> read_reply_to_start(const HostResult& result) {
  if (result.failure != Failure::none) return result.error;
  try {
    return read_reply<host::StartReply>(result);
  } catch (const host::BadMessage& error) {
    return error.what();
  }
}

}  // namespace

std::optional<std::string> read_start(const HostResult& result) {
  const auto reply = read_reply_to_start(result);
  if (const auto* why = std::get_if<std::string>(&reply)) return *why;
  const std::string& error = std::get<host::StartReply>(reply).error;
  return error.empty() ? std::nullopt : std::optional(error);
}

std::optional<std::string> read_job_id(const HostResult& result) {
  const auto reply = read_reply_to_start(result);
  const auto* started = std::get_if<host::StartReply>(&reply);
  if (started == nullptr || started->job.empty()) return std::nullopt;
  return started->job;
}

Command kill_command(const host::KillRequest& request) {
  return ask_host(request);
}

}  // namespace dtool::ssh
