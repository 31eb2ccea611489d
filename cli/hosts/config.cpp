// SPDX-License-Identifier: MIT
// `dtool config`: pushes a set-up script to every host and runs it there in a detached screen
// session.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/kill/end_run.h"
#include "cli/logs/follow.h"
#include "cli/plan/program_words.h"
#include "cli/ready/check_hosts.h"
#include "cli/ready/start_jobs.h"
#include "cli/record/recorded.h"
#include "killfiles/nearest.h"
#include "ssh/machine/files.h"
#include "ssh/quote.h"
#include "ssh/remote.h"
#include "ssh/wire/check.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

constexpr const char* kStillRuns =
    "a set-up script is still running there";  // the words of its host
constexpr const char* kForceEndsIt = "--force ends it first";

constexpr const char* kLog = "~/log_dtool_distributed_config";

std::string read_text(const std::filesystem::path& file, std::string_view flag) {
  if (!std::filesystem::exists(file))
    throw UsageError(fmt::format("{}: there is no file {}", flag, file.string()),
                     killfiles::nearest_file(file));
  std::string text;
  try {
    text = ssh::read_file(file);
  } catch (const std::system_error& fault) {
    throw UsageError(fmt::format("{}: {}", flag, fault.what()));
  }
  if (text.empty()) throw UsageError(fmt::format("{}: {} is empty", flag, file.string()));
  if (text.find('\0') != text.npos)
    throw UsageError(fmt::format("{}: {} is not a text file", flag, file.string()));
  return text;
}

/// The first line of the launcher's public key.
std::string read_public_key(std::string file) {
  const auto folder = ssh::home_folder() / ".ssh";
  for (const char* usual : {"id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"}) {
    if (file.empty() && std::filesystem::exists(folder / usual)) file = folder / usual;
  }
  if (file.empty()) {
    throw UsageError(fmt::format("there is no public key in {}", folder.string()),
                     "make one with ssh-keygen, or name one with --public_key");
  }
  const std::string text = read_text(file, "--public_key");
  const std::string line = text.substr(0, text.find('\n'));
  if (line.find("PRIVATE KEY") != line.npos || line.find(' ') == line.npos) {
    throw UsageError(fmt::format("--public_key: {} is not a public key", file),
                     "its name usually ends with .pub");
  }
  return line;
}

/// `RUN/MACHINE`, as a host says it of a set-up script.
bool is_job(const std::string& text) {
  constexpr std::string_view kMachine = "/machine";
  const std::size_t slash = text.find('/');
  const std::string rest = slash == text.npos ? "" : text.substr(slash);
  return rest.starts_with(kMachine) && host::parse_number<int>(rest.substr(kMachine.size())) &&
         killfiles::is_run_id(text.substr(0, slash));
}

/// Lines of bash that name the interpreter of the script's `#!` line if the host has none such: the
/// shell's own message would name the script alone. Empty if it has no such line.
std::string interpreter_check(const std::string& script) {
  constexpr std::size_t kBefore = 2;
  if (!script.starts_with("#!")) return "";
  std::string line = script.substr(kBefore, script.find('\n') - kBefore);
  line.erase(0, line.find_first_not_of(" \t"));
  const std::string interpreter = line.substr(0, line.find_first_of(" \t"));
  if (!interpreter.starts_with('/')) return "";
  const std::string why =
      fmt::format("{} is not there, which the script's first line names", interpreter);
  return fmt::format("[ -x {} ] || {{ echo {} >&2; exit 127; }}\n", ssh::quote(interpreter),
                     ssh::quote(why));
}

/// An interrupt came before the scripts' turn, on hosts that were ready for them.
void set_not_started(std::vector<ssh::HostResult>& results, const std::vector<std::size_t>& able) {
  for (const std::size_t host : able)
    results[host].fail(ssh::Failure::not_started, "interrupted before its script was started");
}

class ConfigAction : public Action {
 public:
  void add_options(Options& command) override {
    add_host_options(command, hosts_);
    command.add_option("--config_script FILE", script_file_, "the set-up script");
    command.add_flag("--follow", follow_, "show each host's last line, and wait for the end");
    command.add_flag("--force", force_, "first end a set-up script that is still running");
    command.add_flag("--distribute_public_key", distribute_public_key_,
                     "add this machine's public key to each host's authorized_keys, once");
    command.add_option("--public_key FILE", public_key_file_,
                       "that key (~/.ssh/id_ed25519.pub, id_ecdsa.pub or id_rsa.pub)");
  }

  int run(Invocation& invocation) override {
    check_flags();
    if (!script_file_.empty()) script_ = read_text(script_file_, "--config_script");
    refuse_windows_lines(script_file_, script_);
    if (script_file_.ends_with(".py") && !script_.starts_with("#!"))
      throw UsageError(fmt::format("{} has no #! line, so bash would run it", script_file_),
                       "let its first line be: #!/usr/bin/env python3");
    auto targets = choose_targets(hosts_, invocation.settings.all());
    if (!targets) throw UsageError("no hosts were named", "--runs_on names them");
    targets->connect.silent = std::make_shared<ssh::SilentHosts>();
    // The key is read before anybody is reached.
    if (distribute_public_key_) read_public_key(public_key_file_);
    Console& console = invocation.console;
    const auto remote = invocation.reach(targets->hosts, targets->connect);
    const std::string run_id = make_run_id("config");
    std::vector<ssh::HostResult> results =
        ready_hosts(console, *remote, killfiles::run_folder(run_id));
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].failure == ssh::Failure::none) able.push_back(i);
    }
    if (script_file_.empty() || able.empty() || remote->interrupted()) {
      if (!script_file_.empty())
        discard_run_folders(*remote, run_id, invocation.reach, targets->connect);
      if (!script_file_.empty() && remote->interrupted()) set_not_started(results, able);
      return conclude(invocation, *remote, std::move(results), "");
    }

    const auto killfile = write_or_discard(console, *remote, run_id, [&] {
      return write_killfile(invocation, *targets, run_id, able);
    });
    if (!killfile) return kNotDone;
    const auto started =
        start_jobs(console, *remote, make_jobs(*killfile, able), ssh::OldLog::replace);
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < able.size(); ++i) {
      results[able[i]] = started[i];
      if (started[i].error == kStillRuns) results[able[i]].hint = kForceEndsIt;
      if (started[i].ok()) running.push_back(able[i]);
    }
    if (follow_ && !remote->interrupted()) {
      const auto ended = follow_last_lines(console, *remote, *killfile, running);
      for (std::size_t i = 0; i < running.size(); ++i) {
        // A script that an interrupt left behind was started, and goes on.
        const bool was_left = remote->interrupted() && ended[i].failure != ssh::Failure::none;
        if (!was_left) results[running[i]] = ended[i];
      }
    }
    return conclude(invocation, *remote, std::move(results), run_id);
  }

 private:
  void check_flags() const {
    if (script_file_.empty() && !distribute_public_key_) {
      throw UsageError("there is nothing to do",
                       "--config_script names a script, --distribute_public_key adds your key");
    }
    if (!public_key_file_.empty() && !distribute_public_key_) {
      throw UsageError("--public_key is given without --distribute_public_key");
    }
  }

  /// Asks every host, adds the key, and turns a script that still runs into that host's failure.
  std::vector<ssh::HostResult> ready_hosts(Console& console, ssh::Remote& remote,
                                           const std::string& folder) {
    const std::string key = distribute_public_key_ ? read_public_key(public_key_file_) : "";
    host::ReadyRequest request;
    request.public_key = key;
    if (!script_file_.empty()) request.run_folder = folder;
    std::vector<ssh::Task> tasks;
    for (std::size_t i = 0; i < remote.hosts().size(); ++i)
      tasks.push_back({i, ssh::ask_host(request)});
    AnswerCount progress(console, remote.hosts(), "reached");
    ssh::RunOptions options;
    options.timeout = std::chrono::seconds(60);
    options.follows = ssh::Follows::more;
    auto results = remote.run(std::move(tasks), progress, options);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ssh::HostResult& result = results[i];
      if (result.failure != ssh::Failure::none) continue;
      const auto reply = ssh::reply_in<host::ReadyReply>(result);
      if (!reply) {
        result.fail(ssh::Failure::not_started, "the host cannot be readied: " + result.error);
        continue;
      }
      keys_[i] = reply->key;
      identities_[i] = identity_of(reply->host, result);
      const std::vector<Lack> lacks = program_lacks(reply->lacks);
      if (!lacks.empty()) {
        result.fail(ssh::Failure::not_started, lacks.front().error, lacks.front().hint);
      } else if (!reply->running.empty() && !script_file_.empty()) {
        result.fail(ssh::Failure::not_started, kStillRuns, kForceEndsIt);
        if (is_job(reply->running)) running_[i] = reply->running;
      }
    }
    if (force_) end_old(console, remote, results);
    return results;
  }

  /// Ends the scripts that still run, and clears the failure of the hosts where that succeeded.
  void end_old(Console& console, ssh::Remote& remote, std::vector<ssh::HostResult>& ready) const {
    std::vector<ssh::Task> tasks;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const auto job = running_.find(i);
      if (job == running_.end()) continue;
      const std::string run_id = job->second.substr(0, job->second.find('/'));
      const std::string machine = job->second.substr(run_id.size() + 1);
      tasks.push_back(
          {i, ssh::kill_command(
                  {run_id, {"dtool_config_" + machine}, {"~/.dtool/runs/" + job->second}, 5000})});
    }
    AnswerCount progress(console, remote.hosts(), "ended");
    const std::vector<ssh::Task> asked = tasks;
    const auto results = remote.run(std::move(tasks), progress, {});
    for (std::size_t i = 0; i < results.size(); ++i) {
      ssh::HostResult& host = ready[asked[i].host];
      if (is_proven_ended(results[i])) {
        host.failure = ssh::Failure::none;
        host.error.clear();
        host.hint.clear();
      } else {
        host.error = "the set-up script that is still running there could not be ended";
      }
    }
  }

  /// A host where nothing will be started has no session and no folder in the killfile.
  killfiles::Killfile write_killfile(const Invocation& invocation, const Targets& targets,
                                     const std::string& run_id,
                                     const std::vector<std::size_t>& able) const {
    killfiles::Killfile killfile = new_killfile(run_id, invocation.command_line);
    killfile.kind = killfiles::RunKind::config;
    killfile.what = std::filesystem::path(script_file_).filename();
    write_connection(targets.connect, killfile);
    for (std::size_t i = 0; i < targets.hosts.size(); ++i) {
      const int id = static_cast<int>(i);
      killfiles::Machine machine{id, ssh::to_string(targets.hosts[i]), "", "", kLog, "", {}};
      if (std::ranges::find(able, i) != able.end()) {
        machine.session = fmt::format("dtool_config_machine{}", id);
        machine.state_folder = killfiles::state_folder(run_id, id);
        machine.identity = identities_.at(i);
      }
      killfile.machines.push_back(machine);
    }
    killfiles::write(killfile_folder(), killfile);
    return killfile;
  }

  std::vector<HostJob> make_jobs(const killfiles::Killfile& killfile,
                                 const std::vector<std::size_t>& on) const {
    // A script with an interpreter of its own is given to that one.
    const bool has_interpreter = script_.starts_with("#!");
    const std::string check = interpreter_check(script_);
    std::vector<HostJob> jobs;
    for (const std::size_t host : on) {
      const killfiles::Machine& machine = killfile.machines[host];
      const std::string file = ssh::quote_path(machine.state_folder + "/config_script");
      ssh::ScreenJob job{killfile.run_id,
                         machine.session,
                         machine.state_folder,
                         machine.log,
                         "",
                         {{"config_script", script_}}};
      job.host = to_line(machine.identity);
      job.script = has_interpreter ? fmt::format(
                                         "cd\n{1}chmod u+x {0}\n"
                                         "[ -x {0} ] || {{ echo 'no script can be run in "
                                         "~/.dtool: is it mounted noexec?' >&2; exit 126; "
                                         "}}\n{0}\n",
                                         file, check)
                                   : fmt::format("cd\nbash {}\n", file);
      jobs.push_back({host, job});
    }
    return jobs;
  }

  int conclude(Invocation& invocation, ssh::Remote& remote, std::vector<ssh::HostResult> results,
               const std::string& run_id) {
    Console& console = invocation.console;
    const int exit_code = exit_code_of(results, remote);
    if (console.json()) {
      nlohmann::json hosts = nlohmann::json::array();
      for (std::size_t i = 0; i < results.size(); ++i) {
        nlohmann::json host = to_json(results[i]);
        if (distribute_public_key_ && keys_.contains(i)) host["public_key"] = keys_[i];
        hosts.push_back(std::move(host));
      }
      console.document({{"run_id", run_id}, {"exit_code", exit_code}, {"hosts", hosts}});
      return exit_code;
    }
    const std::size_t failed = report_failures(
        console, results, script_file_.empty() ? "adding the public key" : script_file_);
    std::size_t added = 0;
    for (const auto& [host, state] : keys_) added += state == "added" ? 1 : 0;
    if (distribute_public_key_)
      console.note(fmt::format("public key: added on {} of {} hosts", added, results.size()));
    if (script_file_.empty() || failed == results.size()) return exit_code;
    const std::string hosts = fold_hosts(remote.hosts());
    if (follow_ && !remote.interrupted()) {
      console.note(fmt::format("{} of {} hosts set up; logs: {} on each", results.size() - failed,
                               results.size(), kLog));
    } else {
      console.note(
          fmt::format("started on {} of {} hosts; look at it with:\n"
                      "  dtool command --runs_on '{}' --command 'tail -n 5 {}'",
                      results.size() - failed, results.size(), hosts, kLog));
    }
    return exit_code;
  }

  HostOptions hosts_;
  std::string script_file_;
  std::string script_;
  std::string public_key_file_;
  bool distribute_public_key_ = false;
  bool follow_ = false;
  bool force_ = false;
  std::map<std::size_t, std::string> keys_;  ///< per host, what happened to the public key
  /// Each host's script that still runs: `RUN/MACHINE`.
  std::map<std::size_t, std::string> running_;
  /// The identity of each host that answered.
  std::map<std::size_t, killfiles::HostIdentity> identities_;
};

}  // namespace

std::unique_ptr<Action> make_config() {
  return std::make_unique<ConfigAction>();
}

}  // namespace dtool::cli
