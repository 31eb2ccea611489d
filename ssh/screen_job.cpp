// SPDX-License-Identifier: MIT
#include "ssh/screen_job.h"

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

std::optional<host::StartReply> reply_to_start(HostResult& result) {
  auto reply = reply_in<host::StartReply>(result);
  if (reply && reply->error.empty()) return reply;
  if (reply) result.error = reply->error;
  if (result.failure == Failure::none) result.failure = Failure::not_started;
  return std::nullopt;
}

}  // namespace dtool::ssh
