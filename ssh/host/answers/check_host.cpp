// SPDX-License-Identifier: MIT
// Whether this host can run a machine's part of a run, or a set-up script.
#include "ssh/host/answers/answers.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/host/answers/gpus.h"
#include "ssh/host/answers/survey.h"
#include "ssh/host/answers/trainers.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/members.h"
#include "ssh/host/network.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/report_port.h"
#include "ssh/host/start_job.h"
#include "ssh/host/strangers.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using std::chrono::seconds;

constexpr seconds kForEnvironment{300};

/// The part of the way to a folder that exists already.
std::string nearest_folder(std::string path) {
  while (!exists(path) && path != folder_of(path)) path = folder_of(path);
  return path;
}

/// Reads what the request's bash prints after its answers: the number of words, the words, and all
/// variables, each followed by a zero byte.
CommandPrefix take_over(std::string_view text) {
  CommandPrefix inside(parse_number<std::uint16_t>(cut(text, '\0')).value_or(0));
  for (std::string& word : inside) word = cut(text, '\0');
  std::vector<std::string> variables;
  while (!text.empty()) variables.emplace_back(cut(text, '\0'));
  set_environment(variables);
  return inside;
}

/// In a file without a name, since an argument may not be long.
ChildResult run_bash(const std::string& script, seconds timeout) {
  const Descriptor file(::memfd_create("dtool", 0));
  write_all(file.get(), script);
  return run_program({"bash", "/proc/self/fd/" + std::to_string(file.get())}, timeout);
}

CommandPrefix ready_environment(const CheckRequest& request, CheckReply& reply) {
  constexpr std::string_view kReady = "ready\n";
  reply.is_environment_ready = true;
  if (request.environment.text.empty()) return {};
  const ChildResult told = run_bash(request.environment.text, kForEnvironment);
  const std::size_t end = ("\n" + told.out).find("\n" + std::string(kReady));
  reply.environment = told.out.substr(0, std::min(end, told.out.size()));
  const bool is_cut = told.out.size() >= kMostOutput;
  reply.is_environment_ready = end != told.out.npos && !told.timed_out && !is_cut;
  if (reply.is_environment_ready)
    return take_over(std::string_view(told.out).substr(end + kReady.size()));
  if (told.timed_out) reply.environment += "bad_activate=the environment was not ready in 300 s\n";
  if (is_cut)
    reply.environment += "bad_activate=the environment has more than 1 MiB of variables\n";
  return {};
}

bool has_torchrun() {
  return is_program("torchrun") || !find_pytorch({}).folder.empty();
}

/// Which ports are free, and by which address others reach this machine.
void find_listener(const CheckRequest& request, CheckReply& reply) {
  if (!request.port) return;
  std::set<std::uint16_t> taken = listening_ports();
  const auto wanted = static_cast<std::uint16_t>(*request.port);
  reply.is_port_taken = taken.contains(wanted);  // 0 is none that is taken
  // Whoever binds a port and does not listen there has it too.
  const auto is_free = [&taken](std::uint16_t port) {
    return !taken.contains(port) && hold_port(port).is_open();
  };
  const std::uint16_t port = wanted == 0 ? find_port(is_free) : wanted;
  taken.insert(port);
  reply.port = port;
  reply.lacks_port = port == 0;
  if (request.is_supervised && !request.run_folder.empty() && !reply.lacks_port) {
    reply.coordinator_port = hold_free_port(taken, expand_home(request.run_folder));
    reply.lacks_port = reply.coordinator_port == 0;
  }
  reply.address = local_address_towards(parse_address(request.peer, 1));
  if (reply.address.empty()) reply.address = own_address();
  if (reply.address.empty()) reply.address = "127.0.0.1";
}

/// A launcher that was killed between its check and its start left its run's folder empty. They go
/// after a day by the file system's clock, which may be another machine's.
void remove_empty_runs(const std::string& run_folder) {
  constexpr time_t kDay = 86400;
  struct stat own;
  if (::stat(run_folder.c_str(), &own) != 0) return;
  const std::string runs = folder_of(run_folder);
  for (const std::string& name : list_folder(runs)) {
    const std::string folder = runs + "/" + name;
    struct stat found;
    const bool is_old = ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
                        found.st_mtim.tv_sec < own.st_mtim.tv_sec - kDay;
    if (is_old) ::rmdir(folder.c_str());
  }
}

bool make_run_folder(const std::string& run_folder) {
  const OwnersAlone private_files;
  const bool is_made = make_folders(run_folder) && ::access(run_folder.c_str(), W_OK) == 0;
  if (is_made) remove_empty_runs(run_folder);
  return is_made;
}

/// Whether a run's folder could be made.
bool may_make_runs() {
  const std::string nearest = nearest_folder(expand_home("~/.dtool/runs"));
  return is_folder(nearest) && ::access(nearest.c_str(), W_OK) == 0;
}

std::optional<std::uint32_t> find_few_inodes(const std::string& folder) {
  struct statvfs disk;
  if (::statvfs(nearest_folder(folder).c_str(), &disk) != 0) return std::nullopt;
  return too_few_inodes(free_inodes(disk));
}

/// Who is there that could change what the run uses, or what it leaves.
std::string find_strangers(const CheckRequest& request) {
  if (const auto stranger = find_stranger(request.code_folder, Strangers::uninvited))
    return "the folder " + to_string(*stranger) + ", who could put other code there";
  if (const auto stranger = find_stranger(request.output_folder, Strangers::uninvited))
    return "the folder " + to_string(*stranger) + ", who could change the outputs there";
  for (const std::string& name : list_folder(expand_home("~/.dtool")))
    if (const auto stranger = find_stranger("~/.dtool/" + name, Strangers::uninvited))
      return to_string(*stranger) + ", who could change what dtool keeps there";
  return "";
}

}  // namespace

/// A run makes some 25 files there, and some for each of its processes.
std::optional<std::uint32_t> too_few_inodes(std::optional<std::uint64_t> left) {
  constexpr std::uint32_t kEnough = 100;
  if (!left || *left >= kEnough) return std::nullopt;
  return static_cast<std::uint32_t>(*left);
}

bool ends_at_logout(const std::string& settings, const std::string& linger_mark) {
  const std::string more = settings + "/logind.conf.d";
  std::string text = read_file(settings + "/logind.conf").value_or("") + "\n";
  for (const std::string& name : list_folder(more)) {
    if (name.ends_with(".conf")) text += read_file(more + "/" + name).value_or("") + "\n";
  }
  bool ends = false;
  for (auto& [name, value] : read_pairs(text)) {
    std::string_view words = name;
    if (cut_word(words) != "KillUserProcesses") continue;
    std::string_view rest = value;
    const std::string_view word = cut_word(rest);
    ends = ends || word == "yes" || word == "true" || word == "1" || word == "on";
  }
  return ends && !exists(linger_mark);
}

CheckReply check_host(const CheckRequest& request) {
  CheckReply reply;
  reply.host = identify_host();
  reply.lacks = find_lacks(
      request.wants, request.is_survey ? Screen::tried : Screen::found,
      request.environment.text.empty() && !request.wants_torchrun ? Scripts::none : Scripts::some);
  const std::string code = expand_home(request.code_folder);
  // Before the environment is another one.
  if (request.is_survey) reply.survey = survey_host(nearest_folder(code));
  const HostGpus gpus = HostGpus::find();
  reply.hardware = find_hardware(gpus);
  reply.logout_kills = ends_at_logout("/etc/systemd", "/var/lib/systemd/linger/" + user_name());
  reply.runs = running_runs();
  reply.is_home_read_only = request.run_folder.empty()
                                ? !may_make_runs()
                                : !make_run_folder(expand_home(request.run_folder));
  reply.few_inodes = find_few_inodes(
      expand_home(request.run_folder.empty() ? "~/.dtool/runs" : request.run_folder));
  find_listener(request, reply);
  if (request.code_must_exist && !is_folder(code)) reply.missing_code = code;
  reply.stranger = find_strangers(request);
  const CommandPrefix inside = ready_environment(request, reply);
  reply.gpus = gpus.count_visible(request.visible_gpus, request.gpus);
  reply.gpu_lack = gpus.lack_of(request.visible_gpus, request.gpus);
  if (request.wants_torchrun) reply.lacks_torchrun = inside.empty() && !has_torchrun();
  if (!request.trainer.empty() && reply.is_environment_ready) find_trainer(request, inside, reply);
  return reply;
}

namespace {

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
  reply.running = find_set_up();
  if (!request.run_folder.empty()) reply.lacks = find_lacks({}, Screen::found, Scripts::none);
  if (!request.public_key.empty()) reply.key = add_key(request.public_key);
  if (request.run_folder.empty()) return reply;
  const OwnersAlone private_files;
  if (!make_folders(expand_home(request.run_folder)))
    throw std::runtime_error("nothing can be written into ~/.dtool");
  return reply;
}

}  // namespace dtool::host
