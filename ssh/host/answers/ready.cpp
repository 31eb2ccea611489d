// SPDX-License-Identifier: MIT
#include "ssh/host/answers/ready.h"

#include <stdexcept>
#include <string>
#include <string_view>

#include "ssh/host/answers/lacks.h"
#include "ssh/host/files.h"
#include "ssh/host/identity.h"
#include "ssh/host/members.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

/// The first set-up script that still runs, as `RUN/MACHINE`; or empty.
std::string find_running() {
  const std::string runs = expand_home("~/.dtool/runs");
  for (const std::string& run : list_folder(runs)) {
    if (!run.starts_with("config_")) continue;
    for (const std::string& machine : list_folder(runs + "/" + run)) {
      if (!machine.starts_with("machine")) continue;
      const std::string state = runs + "/" + run + "/" + machine;
      const JobFiles job = read_job_files(state);
      // The session outlasts its script by a moment.
      const bool has_ended = exists(state + "/exit_code");
      if (!has_ended && job.leader && find_leader(*job.leader)) return run + "/" + machine;
    }
  }
  return {};
}

std::string add_key(const std::string& key) {
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  const std::string folder = expand_home("~/.ssh");
  const std::string path = folder + "/authorized_keys";
  const OwnersAlone private_files;
  const bool is_there = make_folder(folder) && append_to(path, "");
  const auto text = read_file(path, kMost);
  if (!is_there || !text || text->size() == kMost)
    throw std::runtime_error("the key cannot be added to " + path);
  for (std::string_view rest = *text; !rest.empty();) {
    if (cut_line(rest) == key) return "present";
  }
  const bool lacks_end = !text->empty() && text->back() != '\n';
  if (!append_to(path, (lacks_end ? "\n" : "") + key + "\n"))
    throw std::runtime_error(with_reason("the key cannot be added to " + path));
  return "added";
}

}  // namespace

ReadyReply ready_host(const ReadyRequest& request) {
  ReadyReply reply;
  reply.host = identify_host();
  reply.running = find_running();
  if (!request.run_folder.empty()) reply.lacks = find_lacks({}, Screen::found, Scripts::none);
  if (!request.public_key.empty()) reply.key = add_key(request.public_key);
  if (request.run_folder.empty()) return reply;
  const OwnersAlone private_files;
  if (!make_folders(expand_home(request.run_folder)))
    throw std::runtime_error("nothing can be written into ~/.dtool");
  return reply;
}

}  // namespace dtool::host
