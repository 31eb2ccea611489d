// SPDX-License-Identifier: MIT
// Each host gets the environment that is wanted.
#include "cli/ready/packages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <utility>

#include "cli/console.h"
#include "cli/host_output.h"
#include "cli/ready/trainer_bundle.h"
#include "cli/ready/tree_push.h"
#include "killfiles/whole_file.h"
#include "ssh/host/answers/python_environment.h"
#include "ssh/remote.h"
#include "ssh/wire/check.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

enum class Packaging { python, conda };

/// A host's answer; meaningful if its result is ok.
struct Answer {
  ssh::HostResult result;
  host::PythonReply reply;
};

std::vector<Answer> ask(Console& console, ssh::Remote& remote, const std::string& doing,
                        const host::PythonRequest& request,
                        std::optional<std::chrono::seconds> timeout) {
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < remote.hosts().size(); ++i)
    tasks.push_back({i, ssh::ask_host(request)});
  AnswerCount progress(console, remote.hosts(), doing);
  ssh::RunOptions options;
  if (timeout) options.timeout = *timeout;
  options.follows = ssh::Follows::more;
  std::vector<Answer> answers;
  for (ssh::HostResult& result : remote.run(std::move(tasks), progress, options)) {
    auto reply = ssh::reply_in<host::PythonReply>(result).value_or(host::PythonReply());
    answers.push_back({std::move(result), std::move(reply)});
  }
  console.progress("");
  return answers;
}

/// Whether a word of a host's can be a part of `3.11`, `x86_64` and the like.
bool is_plain(std::string_view word) {
  return !word.empty() && word.size() < 32 && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_';
  });
}

/// The numbers of `3.11.2`.
std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  while (!version.empty()) {
    const std::size_t dot = std::min(version.find('.'), version.size());
    numbers.push_back(host::parse_number<int>(version.substr(0, dot)).value_or(0));
    version.remove_prefix(std::min(dot + 1, version.size()));
  }
  return numbers;
}

bool is_earlier(std::string_view version, std::string_view other) {
  return numbers_of(version) < numbers_of(other);
}

void judge_python(Answer& answer, Packaging kind) {
  const host::PythonReply& reply = answer.reply;
  if (!answer.result.ok()) return;
  const bool is_conda = kind == Packaging::conda;
  if (reply.version.empty() && !reply.fault.empty()) {
    answer.result.fail(
        ssh::Failure::not_started,
        "--environment: its python3 does not start: " + without_controls(reply.fault),
        "what it needs there (LD_LIBRARY_PATH, modules) is to be set in a log-in shell, too");
  } else if (reply.version.empty() ||
             (is_conda && host::minor_of_python(reply.version) < kOldestCondaPython)) {
    answer.result.fail(
        ssh::Failure::not_started,
        is_conda ? "--environment: there is no python3 of 3.10 or later, which py-rattler needs to "
                   "install conda's packages"
                 : "--environment: there is no python3 of 3.8 or later",
        "dtool command --command 'apt-get install -y python3' installs it on Debian");
  } else if (!is_plain(reply.version) || !is_plain(reply.processor) || !is_plain(reply.kernel)) {
    answer.result.fail(ssh::Failure::not_started,
                       "its answer cannot be read: what it says of its Python");
  } else if (glibc_of(reply.libc) == 0) {
    answer.result.fail(ssh::Failure::not_started,
                       "--environment: its libc is not glibc, for which packages are made");
  }
}

/// What hosts must have in common, in words.
std::string common_of(const host::PythonReply& reply, Packaging kind) {
  return kind == Packaging::conda
             ? fmt::format("the processor {}", reply.processor)
             : fmt::format("Python 3.{} on {}", host::minor_of_python(reply.version),
                           reply.processor);
}

/// What most hosts have; the others fail, since one environment cannot serve both.
CondaHosts agree(std::vector<Answer>& answers, Packaging kind) {
  std::map<std::string, std::size_t> counts;
  for (const Answer& each : answers)
    if (each.result.ok()) ++counts[common_of(each.reply, kind)];
  if (counts.empty()) return {};
  const std::string most =
      std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
  std::optional<CondaHosts> all;
  for (Answer& each : answers) {
    if (!each.result.ok()) continue;
    const host::PythonReply& reply = each.reply;
    if (const std::string own = common_of(reply, kind); own != most) {
      each.result.fail(ssh::Failure::not_started,
                       fmt::format("--environment: it has {}, and other hosts {}", own, most),
                       kind == Packaging::conda ? "one run of them for each processor"
                                                : "the same Python belongs on all hosts of a run");
      continue;
    }
    const HostPython python{reply.version, reply.processor, glibc_of(reply.libc)};
    if (!all) all = CondaHosts{python, reply.kernel, reply.cuda};
    all->python.version = std::min(all->python.version, python.version, is_earlier);
    all->python.glibc = std::min(all->python.glibc, python.glibc);
    all->kernel = std::min(all->kernel, reply.kernel, is_earlier);
    all->cuda = std::min(all->cuda, reply.cuda);
  }
  return *all;
}

void tell_change(Console& console, const ssh::Host& host, const host::PythonReply& reply) {
  if (reply.fault.empty()) return;
  console.note(fmt::format("{}: the environment there is not as it was built: {}; it is built anew",
                           ssh::to_string(host), without_controls(reply.fault)));
}

/// Those packages that every host has in the same version: `NAME==VERSION`.
std::vector<std::string> common_packages(const std::vector<Answer>& answers) {
  static const std::regex form("[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9._+!-]*");
  std::map<std::string, std::size_t> counts;
  for (const Answer& each : answers) {
    std::set<std::string> own;
    for (std::string_view rest = each.reply.packages; !rest.empty();)
      own.insert(std::string(host::cut_line(rest)));
    for (const std::string& package : own) ++counts[package];
  }
  std::vector<std::string> common;
  for (const auto& [package, count] : counts)
    if (count == answers.size() && std::regex_match(package, form)) common.push_back(package);
  return common;
}

/// Who has a PyTorch on the hosts may miss it in an environment that hides it.
void note_hidden_torch(Console& console, const PackageNeeds& needs, const Packages& packages,
                       const std::vector<std::string>& common) {
  const std::string lock = killfiles::read_whole(packages.tree.root / kLockFile);
  if (common.empty() || needs.own_packages == OwnPackages::seen ||
      ("\n" + lock).find("\ntorch==") != std::string::npos)
    return;
  console.note(fmt::format(
      "the hosts have {}, and the environment of {} is without torch: --system_site_packages lets "
      "it see the hosts' own packages",
      common.front(), without_controls(needs.file.string())));
}

}  // namespace

std::string supply_environment(Console& console, ssh::Remote& remote, PackageNeeds needs,
                               const JudgeStep& judge) {
  constexpr std::chrono::seconds kForAnswer{60};
  const std::filesystem::path& file = needs.file;
  const Packaging kind = is_conda_file(file) ? Packaging::conda : Packaging::python;
  const bool sees_system = needs.own_packages == OwnPackages::seen;
  std::vector<Answer> answers =
      ask(console, remote, "looked at", {"", false, false, sees_system}, kForAnswer);
  for (Answer& each : answers) judge_python(each, kind);
  const CondaHosts hosts = agree(answers, kind);
  if (!judge(results_of(answers), "asking for Python")) return {};
  const std::vector<std::string> common = common_packages(answers);
  if (sees_system) needs.held = common;
  const Packages packages = kind == Packaging::conda ? resolve_conda(console, file, hosts)
                                                     : resolve_python(console, needs, hosts.python);
  if (kind == Packaging::python) note_hidden_torch(console, needs, packages, common);
  const std::string folder = "~/.dtool/environments/" + packages.hash;
  host::PythonRequest request{packages.hash, false, kind == Packaging::conda, sees_system};
  answers = ask(console, remote, "asked for the environment", request, kForAnswer);
  if (!judge(results_of(answers), "asking for the environment")) return {};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].reply.is_built) continue;
    places.push_back(i);
    tell_change(console, remote.hosts()[i], answers[i].reply);
  }
  if (!places.empty()) {
    if (!judge(send_to_store(console, remote, packages.tree, "the Python packages",
                             folder + "/packages", places),
               "sending the Python packages"))
      return {};
    request.builds = true;
    answers = ask(console, remote, "have the environment", request, std::nullopt);
    for (Answer& each : answers) {
      if (!each.result.ok() || each.reply.is_built) continue;
      each.result.fail(ssh::Failure::not_started,
                       fmt::format("--environment: it cannot be built: {}",
                                   each.reply.fault.empty() ? "it is not whole"
                                                            : without_controls(each.reply.fault)));
    }
    if (!judge(results_of(answers), "building the environment")) return {};
    std::vector<ssh::Host> built;
    for (const std::size_t place : places) built.push_back(remote.hosts()[place]);
    console.note(
        fmt::format("built {} on {}", without_controls(file.string()), fold_hosts_in_short(built)));
  }
  return folder + (request.is_conda ? "/conda" : "/venv");
}

}  // namespace dtool::cli
