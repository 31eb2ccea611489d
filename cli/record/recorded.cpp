// SPDX-License-Identifier: MIT
#include "cli/record/recorded.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <chrono>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/console.h"
#include "cli/host_output.h"
#include "cli/record/record.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/machine/interrupts.h"
#include "ssh/notice.h"
#include "ssh/remote.h"
#include "ssh/wire/tree.h"

namespace dtool::cli {

std::filesystem::path killfile_folder() {
  return ssh::home_folder() / ".dtool" / "killfiles";
}

namespace {

/// The record of the only run that `id` is, or begins, and that has no killfile any more. Nothing
/// if another run may be meant.
std::optional<RunRecord> find_forgotten(const std::string& id) {
  std::vector<std::string> begun = recorded_ids();
  std::erase_if(begun, [&id](const std::string& each) { return !each.starts_with(id); });
  const bool is_exact = std::ranges::count(begun, id) > 0;
  if (begun.size() != 1 && !is_exact) return std::nullopt;
  const std::string& name = is_exact ? id : begun.front();
  if (!killfiles::is_run_id(name)) return std::nullopt;
  if (std::filesystem::exists(killfiles::path_of(killfile_folder(), name))) return std::nullopt;
  try {
    return find_record(name);
  } catch (const std::runtime_error&) {
    return std::nullopt;  // dtool show tells why it cannot be read
  }
}

/// Whether it is the run's whole id, its tag, or all of it before the time.
bool is_name_of(const std::string& run_id, const std::string& text) {
  constexpr std::size_t kTime = 23;  // the length of `_20261121-034512-3fa91c`
  const std::string name = run_id.substr(0, run_id.size() - std::min(run_id.size(), kTime));
  return run_id == text || name == text || name.ends_with("_" + text);
}

bool is_recorded_by(const std::string& name) {
  return std::ranges::any_of(
      killfiles::list(killfile_folder()),
      [&](const killfiles::Listed& each) { return is_name_of(each.file.stem(), name); });
}

/// The record of a run with that id, name or tag that has no killfile any more.
std::optional<RunRecord> find_forgotten_by(const std::string& name) {
  std::error_code fault;
  for (const auto& each : std::filesystem::directory_iterator(record_folder(), fault)) {
    const std::string id = each.path().stem();
    if (each.path().extension() != ".json" || !is_name_of(id, name)) continue;
    if (auto record = find_forgotten(id)) return record;
  }
  return std::nullopt;
}

UsageError was_forgotten(const RunRecord& run) {
  const auto& forgotten = run.forgotten;
  const bool is_left = forgotten && !forgotten->left_on.empty();
  const std::string ended =
      !forgotten || is_left ? "" : "was ended, and ";  // an older dtool may have forgotten it
  const std::string left =
      is_left ? fmt::format(", though something may be left on {}", forgotten->left_on) : "";
  std::string hint = "dtool show, diff, rerun and run --resume still take it";
  if (!run.machines.empty())
    hint += fmt::format("; its logs and outputs were left in {} on {}",
                        run.machines.front().output_folder,
                        run.machines.size() == 1 ? run.machines.front().host : "each host");
  return UsageError(
      fmt::format("{} {}its killfile was deleted{}{}", run.run_id, ended,
                  forgotten ? fmt::format(" at {}", local_time(forgotten->at)) : "", left),
      hint);
}

}  // namespace

std::optional<killfiles::Killfile> run_unless_host(const std::string& text) {
  if (text.starts_with('@')) return std::nullopt;
  std::vector<std::string> ids;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder()))
    if (each.killfile) ids.push_back(each.killfile->run_id);
  const killfiles::Meant meant = killfiles::runs_meant(ids, text);
  if (meant.ids.empty() || meant.is_part) return std::nullopt;
  return recorded_run(text);
}

UsageError unreadable(const killfiles::Listed& listed) {
  const bool has_hint = listed.error.find("\nhint: ") != listed.error.npos;
  return UsageError(listed.error, has_hint ? "" : "mend the file: dtool needs it to end the run");
}

killfiles::Listed find_recorded(const std::string& id, const killfiles::Narrow& narrow,
                                killfiles::Parts parts) {
  // Who names a run that was forgotten does not mean one whose name only begins so.
  if (parts == killfiles::Parts::do_not_count && !is_recorded_by(id)) {
    if (const auto forgotten = find_forgotten_by(id)) throw was_forgotten(*forgotten);
  }
  try {
    return killfiles::find(killfile_folder(), id, narrow, ssh::notice, parts);
  } catch (const std::invalid_argument&) {
    if (const auto forgotten = find_forgotten(id)) throw was_forgotten(*forgotten);
    throw;
  }
}

killfiles::Killfile recorded_run(const std::string& id, const std::string& hint) {
  if (!id.empty()) {
    const killfiles::Listed found = find_recorded(id);
    if (!found.killfile) throw unreadable(found);
    return *found.killfile;
  }
  const auto runs = killfiles::without_set_ups(killfiles::list(killfile_folder()));
  for (const killfiles::Listed& each : runs)
    if (each.killfile) return *each.killfile;
  if (!runs.empty()) throw unreadable(runs.front());
  throw UsageError("no run is recorded in " + killfile_folder().string(), hint);
}

std::vector<std::size_t> choose_machines(const killfiles::Killfile& killfile,
                                         const std::vector<std::string>& wanted) {
  const auto& machines = killfile.machines;
  const auto is_called = [](const killfiles::Machine& machine, const std::string& name) {
    return name == std::to_string(machine.id) || name == machine.host ||
           name == ssh::parse_host(machine.host).name;
  };
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const bool is_wanted = std::ranges::any_of(
        wanted, [&](const std::string& name) { return is_called(machines[i], name); });
    if (wanted.empty() || is_wanted) chosen.push_back(i);
  }
  for (const std::string& name : wanted) {
    if (std::ranges::any_of(machines, [&](const auto& each) { return is_called(each, name); }))
      continue;
    const int first = machines.front().id;
    const int last = machines.back().id;
    throw UsageError(
        fmt::format("{} has no machine {}", killfile.run_id, without_controls(name)),
        first == last ? fmt::format("it has machine {} alone, on {}", first, machines.front().host)
                      : fmt::format("its machines are {} to {}; a host's name works, too: {}",
                                    first, last, machines.front().host));
  }
  return chosen;
}

std::vector<HostMachines> machines_by_host(const std::vector<ssh::Host>& hosts,
                                           const killfiles::Killfile& killfile) {
  const bool is_one_a_machine = hosts.size() == killfile.machines.size();
  std::vector<HostMachines> groups;
  std::map<std::string, std::size_t> group_of;
  for (std::size_t i = 0; i < killfile.machines.size(); ++i) {
    const ssh::Host host = is_one_a_machine ? hosts[i] : ssh::parse_host(killfile.machines[i].host);
    const auto [at, is_new] = group_of.try_emplace(ssh::to_string(host), groups.size());
    if (is_new) {
      const auto place = std::ranges::find(hosts, host);
      groups.push_back({static_cast<std::size_t>(place - hosts.begin()), {}});
    }
    groups[at->second].machines.push_back(i);
  }
  return groups;
}

std::string stranger_at(const killfiles::Machine& machine, const std::string& host,
                        const ssh::HostResult& result) {
  auto found = killfiles::parse_identity(host).value_or(killfiles::HostIdentity());
  if (!found.is_known()) return "";
  found.host_key = result.host_key;
  if (compare(machine.identity, found) != killfiles::Likeness::another) return "";
  return fmt::format("another host answers to this name, {}; the run was started on {}",
                     describe(found), describe(machine.identity));
}

namespace {

/// Hosts whose folders differ in nothing but the machine's number.
struct KeptIn {
  std::vector<ssh::Host> hosts = {};
  std::set<std::string> folders = {};

  void add(const ssh::Host& host, const std::string& folder) {
    hosts.push_back(host);
    folders.insert(folder);
  }
};

/// `…/machine*.written` of `…/machine3.written`.
std::string for_all_machines(const std::string& folder) {
  constexpr std::string_view kMachine = "/machine";
  const std::size_t at = folder.rfind(kMachine);
  if (at == folder.npos) return folder;
  const std::size_t number = at + kMachine.size();
  const std::size_t end = folder.find_first_not_of("0123456789", number);
  if (end == number) return folder;
  return folder.substr(0, number) + "*" + (end == folder.npos ? "" : folder.substr(end));
}

}  // namespace

std::size_t remove_on_hosts(Console& console, ssh::Remote& remote,
                            const killfiles::Killfile& killfile, What what) {
  assert(killfiles::is_run_id(killfile.run_id));  // it names the folder that is deleted
  std::vector<ssh::Task> tasks;
  for (const HostMachines& each : machines_by_host(remote.hosts(), killfile)) {
    const bool was_begun = !killfile.machines[each.machines.front()].state_folder.empty();
    if (!was_begun) continue;
    tasks.push_back(
        {each.host, ssh::ask_host(host::RemoveRequest{killfile.run_id, what == What::all})});
  }
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::minutes(5);  // a large tree on a slow disk
  std::size_t trees = 0;
  std::map<std::string, std::vector<ssh::Host>> left;
  std::map<std::string, KeptIn> kept;
  for (ssh::HostResult& result : remote.run(std::move(tasks), nobody, options)) {
    const auto reply = ssh::reply_in<host::RemoveReply>(result);
    if (!reply) {
      left[result.error].push_back(result.host);
      continue;
    }
    if (reply->had_tree) ++trees;
    if (!reply->kept.empty()) kept[for_all_machines(reply->kept)].add(result.host, reply->kept);
  }
  for (const auto& [fault, hosts] : left)
    console.note(fmt::format("{}: {} of the run is left: {}", fold_hosts(hosts),
                             killfiles::run_folder(killfile.run_id), without_controls(fault)));
  for (const auto& [pattern, each] : kept)
    console.note(fmt::format(
        "{}: what the run wrote into its copy of the code is kept in {}", fold_hosts(each.hosts),
        without_controls(each.folders.size() == 1 ? *each.folders.begin() : pattern)));
  return trees;
}

namespace {

std::tm utc() {
  return fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
}

std::string user_and_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const passwd* entry = ::getpwuid(::getuid());
  return fmt::format("{}@{}", entry != nullptr ? entry->pw_name : "?", host.data());
}

}  // namespace

std::string make_run_id(const std::string& name) {
  std::string safe;
  for (const char each : name) {
    const bool is_harmless =
        std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '-' || each == '.';
    safe += is_harmless ? each : '_';
  }
  constexpr std::size_t kLongest =
      40;  // a screen session's name has a limit, and the id stands in it
  safe = safe.substr(0, kLongest);
  const std::size_t begin = safe.find_first_not_of("._-");
  safe = begin == safe.npos ? "run" : safe.substr(begin);
  return fmt::format("{}_{:%Y%m%d-%H%M%S}-{}", safe, utc(), ssh::random_hex(3));
}

std::optional<std::time_t> read_time(const std::string& text) {
  std::tm time{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return ::timegm(&time);
}

std::string local_time(const std::string& text) {
  const auto time = read_time(text);
  return time ? fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(*time)) : text;
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc());
}

killfiles::Killfile new_killfile(const std::string& run_id,
                                 const std::vector<std::string>& command_line) {
  killfiles::Killfile killfile;
  killfile.run_id = run_id;
  assume_older(killfile);
  note_start(killfile, command_line);
  return killfile;
}

void note_start(killfiles::Run& run, const std::vector<std::string>& command_line) {
  run.created = utc_now();
  run.launcher = user_and_host();
  run.command_line = command_line;
}

void discard_run_folders(ssh::Remote& remote, const std::string& run_id, const Reach& reach,
                         ssh::ConnectOptions connect) {
  std::unique_ptr<ssh::Remote> again;
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(30);  // a host that did not answer before may not now
  if (remote.interrupted()) {
    if (!reach || ssh::is_to_leave()) return;
    ssh::forget_interrupts();
    // Nobody is asked for a password again, and the trace that tells of the interrupt stays.
    connect.program = ssh::Program::libssh;
    connect.keep = std::chrono::seconds(0);
    connect.trace.clear();
    connect.forced_connect_timeout = std::chrono::seconds(3);
    connect.tries = 1;
    again = reach(remote.hosts(), connect);
    options.timeout = std::chrono::seconds(10);
    options.on_interrupt = ssh::OnInterrupt::leave;
  }
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < remote.hosts().size(); ++i)
    tasks.push_back({i, ssh::ask_host(host::RemoveRequest{run_id})});
  ssh::Events nobody;
  (again ? *again : remote).run(std::move(tasks), nobody, options);
}

std::optional<killfiles::Killfile> write_or_discard(
    Console& console, ssh::Remote& remote, const std::string& run_id,
    const std::function<killfiles::Killfile()>& write) {
  try {
    return write();
  } catch (const std::exception& error) {
    console.fail(error);
    discard_run_folders(remote, run_id);
    console.note("nothing was started, since it could not be recorded");
    return std::nullopt;
  }
}

}  // namespace dtool::cli
