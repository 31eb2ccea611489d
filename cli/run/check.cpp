#include "cli/run/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>

#include "cli/host_output.h"
#include "cli/jobs.h"
#include "cli/run/environment/environment_lacks.h"
#include "cli/run/environment/program_lacks.h"
#include "cli/scripts.h"
#include "ssh/number.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "ssh/scripts.h"

namespace dtool::cli {
namespace {

/// IPv4, IPv6 with its zone, or a name; or nothing.
bool is_address(std::string_view text) {
  return !text.starts_with('-') && std::ranges::all_of(text, [](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) != 0 ||
           std::string_view(".:%-_").find(each) != std::string_view::npos;
  });
}

using ssh::Answers;

/// The trainer that was installed or built with this dtool; hosts that share its file system have
/// it too.
std::string trainer_beside() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "dtool-trainer";
}

std::string check_script(const Needs& needs, std::size_t host, const std::string& peer) {
  std::string text(ssh::answer_function());
  text += fmt::format("folder={}\ncode={}\n",
                      needs.run_id.empty() ? "''" : ssh::quote_path(run_folder(needs.run_id)),
                      needs.code_must_exist ? ssh::quote_path(needs.code_folders[host]) : "''");
  text += environment_script(needs.environment, {});
  text += fmt::format("runs_here={}\n", needs.runs_here ? "yes" : "no");
  text += fmt::format("trainer_beside={}\n", needs.trainer ? ssh::quote(trainer_beside()) : "''");
  text += fmt::format("experiment={}\nmachines={}\n",
                      ssh::quote(host > 0 ? "" : needs.experiment_toml), needs.machines);
  text += fmt::format("wants_rsync={}\nwants_session={}\ntries_all={}\npeer={}\n",
                      needs.rsync ? "yes" : "no", needs.session ? "yes" : "no",
                      needs.survey == Survey::yes ? "yes" : "no", ssh::quote(peer));
  const bool is_asked = host < needs.launcher_checks.size() && !needs.launcher_checks[host].empty();
  text +=
      fmt::format("check_launcher() {{\n{}\n}}\n", is_asked ? needs.launcher_checks[host] : ":");
  text += fmt::format("port={}\n", host > 0          ? "''"
                                   : needs.port == 0 ? "auto"
                                                     : std::to_string(needs.port));
  text += fmt::format("code_place={}\n", ssh::quote_path(needs.code_folders[host]));
  text.append(scripts::kPrograms);
  if (needs.survey == Survey::yes) text.append(scripts::kSurvey);
  return text.append(ssh::scripts::kIdentify).append(scripts::kFree_port).append(scripts::kCheck);
}

void set_lack(Checked& checked, std::string what, std::string error, std::string hint) {
  if (error.empty()) error = "something that it did not name";
  checked.lacks.push_back({std::move(what), error, hint});
  ssh::HostResult& result = checked.result;
  if (result.failure != ssh::Failure::none) {
    result.error += "; " + error;
    return;
  }
  result.failure = ssh::Failure::not_started;
  result.error = std::move(error);
  result.hint = std::move(hint);
}

void judge_home(const Answers& answers, Checked& checked) {
  if (!answers.contains("home_read_only")) return;
  set_lack(checked, "home", "nothing can be written into ~/.dtool",
           "a run keeps its state there: whose is it, and is the disk full or read-only?");
}

void judge_trainer(const Answers& answers, const Needs& needs, Checked& checked) {
  checked.trainer = ssh::find_answer(answers, "trainer").value_or("");
  if (checked.trainer.empty()) {
    set_lack(
        checked, "trainer", "dtool-trainer is not there",
        "install dtool on the host (cmake --install), or put dtool-trainer into its ~/.dtool/bin");
    return;
  }
  const std::string version = ssh::find_answer(answers, "trainer_version").value_or("");
  if (version.starts_with("dtool-trainer " DTOOL_VERSION " ") ||
      version == "dtool-trainer " DTOOL_VERSION)
    return;
  if (needs.environment.container && !version.starts_with("dtool-trainer ")) {
    set_lack(
        checked, "trainer",
        fmt::format("{} does not run in the container: {}", checked.trainer, version),
        "the image has to have LibTorch and what else it is linked with; --bind may lead there");
    return;
  }
  set_lack(
      checked, "trainer",
      fmt::format("{} is not of version {}: it says {}", checked.trainer, DTOOL_VERSION, version),
      "install the same dtool everywhere; LibTorch belongs to it (apt-get install libtorch1.13 "
      "libgloo0)");
}

/// The number that the host answered; 0 where it said nothing. What is none is a failure of that
/// host.
int read_number(const Answers& answers, const std::string& name, int most, Checked& checked) {
  const auto text = ssh::find_answer(answers, name);
  if (!text) return 0;
  const auto value = ssh::read_number<int>(*text);
  if (value && *value >= 0 && *value <= most) return *value;
  set_lack(checked, "answer",
           fmt::format("its answer {}={} is no number from 0 to {}", name, *text, most), "");
  return 0;
}

/// `dtool-trainer: experiment:3:1: SENTENCE hint: HINT`, as it came through a one-line answer, as a
/// sentence and a line of its own for the hint. The place is that in the merged text, which nobody
/// has seen.
std::string readable_fault(std::string text) {
  constexpr std::string_view kProgram = "dtool-trainer: ";
  constexpr std::string_view kFile = "experiment:";
  if (text.starts_with(kProgram)) {
    text.erase(0, kProgram.size());
    const std::size_t end = text.find_first_not_of("0123456789:", kFile.size());
    if (text.starts_with(kFile) && end != text.npos && end > kFile.size() && text[end] == ' ')
      text.erase(0, end + 1);
  }
  const std::size_t hint = text.rfind(" hint: ");
  if (hint != text.npos) text.replace(hint, 1, "\n");
  return text;
}

void judge(Checked& checked, const Needs& needs) {
  ssh::HostResult& result = checked.result;
  if (result.failure != ssh::Failure::none) return;
  const Answers& answers = checked.answers = ssh::read_answers(result.out);
  const auto find = [&answers](const char* name) { return ssh::find_answer(answers, name); };
  if (!find("checked")) {
    const bool has_no_bash = result.exit_code == 127;
    if (result.exit_code == ssh::kBashIsTooOld &&
        result.err.find(" is too old: ") != result.err.npos) {
      set_lack(checked, "programs", words_of(result),
               "the bash that comes first in the log-in's PATH is taken: a newer one may be put "
               "before it");
      return;
    }
    set_lack(
        checked, "answer",
        has_no_bash ? "bash is not there" : "the host cannot be looked at: " + words_of(result),
        has_no_bash ? "install bash on the host" : "");
    return;
  }
  for (Lack& lack : program_lacks(answers))
    set_lack(checked, std::move(lack.what), std::move(lack.error), std::move(lack.hint));
  judge_home(answers, checked);
  for (Lack& lack : environment_lacks(answers))
    set_lack(checked, std::move(lack.what), std::move(lack.error), std::move(lack.hint));
  if (const auto folder = find("no_code")) {
    set_lack(checked, "code",
             fmt::format("there is no folder {}, and --no_sync sends none", *folder), "");
  }
  if (needs.trainer) judge_trainer(answers, needs, checked);
  if (const auto error = find("launcher_lack"))
    set_lack(checked, "launcher", *error, find("launcher_hint").value_or(""));
  checked.experiment_fault = readable_fault(find("bad_experiment").value_or(""));
  if (const auto port = find("port_taken")) {
    set_lack(checked, "port", fmt::format("something listens on port {} already", *port),
             "--distributed_ip_and_port auto takes a free one");
  }
  checked.gpus = read_number(answers, "gpus", 1024, checked);
  checked.address = find("address").value_or("");
  if (!is_address(checked.address)) {
    set_lack(checked, "address", "the host's answer cannot be read: its address is none", "");
    checked.address.clear();
  }
  const int port = read_number(answers, "port", 65535, checked);
  checked.port = port == 0 ? needs.port : static_cast<std::uint16_t>(port);
  checked.coordinator_port =
      static_cast<std::uint16_t>(read_number(answers, "coordinator_port", 65535, checked));
  checked.logout_kills = find("logout_kills").has_value();
  checked.identity = identity_of(answers, result);
}

/// What the hosts of one call of check_hosts answer, and where they go on.
class Checking : public ProgressListener {
 public:
  Checking(Console& console, const std::vector<ssh::Host>& hosts, const Needs& needs,
           tree_sync::Pushing* push)
      : ProgressListener(console, hosts, "looked at"),
        needs_(needs),
        push_(push),
        checked_(hosts.size()),
        answered_(hosts.size()),
        pushes_(hosts.size()) {}

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    if (pushes_[host]) push_->on_output(host, stream, bytes);
  }

  void on_input(std::size_t host, const ssh::Transferred& input) override {
    if (pushes_[host]) push_->on_input(host, input);
  }

  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override {
    if (pushes_[host]) return push_->next_task(host, result);
    take(host, result);
    const Checked& checked = checked_[host];
    pushes_[host] = push_ != nullptr && checked.result.ok() && checked.experiment_fault.empty();
    if (!pushes_[host]) return std::nullopt;
    return ssh::NextTask{push_->first_task(host)};
  }

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    if (pushes_[host]) {
      push_->on_result(host, result);
    } else if (!answered_[host]) {  // its turn did not come
      take(host, result);
    }
  }

  std::vector<Checked> take_all() { return std::move(checked_); }

 private:
  void take(std::size_t host, const ssh::HostResult& result) {
    Checked& checked = checked_[host];
    answered_[host] = true;
    checked.result = result;
    judge(checked, needs_);
    ProgressListener::on_result(host, result);
  }

  const Needs& needs_;
  tree_sync::Pushing* push_;
  std::vector<Checked> checked_;
  std::vector<bool> answered_;  ///< by host: has been looked at, or cannot be
  std::vector<bool> pushes_;    ///< by host: has come to the push
};

}  // namespace

killfiles::HostIdentity identity_of(const Answers& answers, const ssh::HostResult& result) {
  const std::string line = ssh::find_answer(answers, "host").value_or("");
  killfiles::HostIdentity identity =
      killfiles::parse_identity(line).value_or(killfiles::HostIdentity());
  if (identity.is_known()) identity.host_key = result.host_key;
  return identity;
}

std::string words_of(const ssh::HostResult& result) {
  std::string words = result.err.empty() ? result.out : result.err;
  words.erase(words.find_last_not_of(" \r\n") + 1);
  return words.empty() ? fmt::format("exit code {}", result.exit_code) : words;
}

std::vector<Checked> check_hosts(Console& console, ssh::Remote& remote, const Needs& needs,
                                 tree_sync::Pushing* push) {
  const auto& hosts = remote.hosts();
  // A local machine 0 finds out by which of its addresses it reaches the next machine.
  const std::string peer = hosts.size() > 1 ? hosts[1].name : "";
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    tasks.push_back({i, ssh::bash(check_script(needs, i, peer))});
  Checking checking(console, hosts, needs, push);
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(60);
  remote.run(std::move(tasks), checking, options);
  return checking.take_all();
}

}  // namespace dtool::cli
