// SPDX-License-Identifier: MIT
#include "cli/ready/check_hosts.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cli/host_output.h"
#include "cli/plan/flags.h"
#include "cli/scripts.h"
#include "killfiles/killfile.h"
#include "killfiles/version.h"
#include "ssh/host/answers/trainers.h"
#include "ssh/quote.h"
#include "ssh/remote.h"
#include "ssh/script.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

/// Bash that readies the environment and asks what the launcher wants to know; empty if there is
/// nothing of either. It answers in lines of its own, whatever what it sources prints.
std::string ready_script(const Needs& needs, std::size_t host) {
  const std::string asked = host < needs.engine_checks.size() ? needs.engine_checks[host] : "";
  const Environment& environment = needs.environment;
  const bool is_bare =
      environment.modules.empty() && environment.activate.empty() && !environment.container;
  if (is_bare && asked.empty()) return {};
  std::string text =
      "exec 5>&1 > /dev/null\n"
      "answer() { printf '%s=%s\\n' \"$1\" \"${2//$'\\n'/ }\" >&5; }\n";
  text += environment_script(environment, {});
  text += fmt::format("runs_here={}\n", needs.runs_here ? "yes" : "no");
  text += fmt::format("trainer_beside={}\n",
                      needs.trainer ? ssh::quote(trainer_beside().string()) : "''");
  text += fmt::format("trainer_bundle={}\n", ssh::quote(needs.trainer_bundle));
  text += fmt::format("code_place={}\n", ssh::quote_path(needs.code_folders[host]));
  text += fmt::format("check_launcher() {{\n{}\n}}\n", asked.empty() ? ":" : asked);
  return text.append(scripts::kReady);
}

/// The numeric form of a host's name, as this machine finds it; empty if it finds none.
std::string numeric_address(const std::string& name) {
  if (name.empty()) return {};
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::array<char, NI_MAXHOST> text{};
  const int code = ::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(),
                                 nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text.data() : "";
}

host::CheckRequest make_request(const Needs& needs, std::size_t host) {
  host::CheckRequest request;
  request.wants = {needs.session};
  request.is_survey = needs.facts == AskedFacts::all;
  if (!needs.run_id.empty()) request.run_folder = killfiles::run_folder(needs.run_id);
  request.code_folder = needs.code_folders[host];
  request.code_must_exist = needs.code_must_exist;
  if (!needs.outputs.empty())
    request.output_folder =
        ssh::is_anchored(needs.outputs) ? needs.outputs : request.code_folder + "/" + needs.outputs;
  request.environment.text = ready_script(needs, host);
  request.wants_torchrun = needs.environment.torchrun == Torchrun::yes;
  if (needs.trainer) {
    request.trainer = trainer_beside();
    request.trainer_version = killfiles::dtool_version();
    request.bundle = needs.trainer_bundle;
    request.bundle_pytorch = needs.bundle_pytorch;
  }
  request.machines = needs.machines;
  request.visible_gpus = needs.visible_gpus;
  request.gpus = needs.gpus;
  if (host > 0) return request;
  request.experiment.text = needs.experiment_toml;
  request.port = needs.port;
  request.is_supervised = needs.is_supervised;
  request.peer = numeric_address(needs.peer);
  return request;
}

void set_lack(Checked& checked, std::string what, std::string error, std::string hint) {
  if (error.empty()) error = "something that it did not name";
  checked.lacks.push_back({std::move(what), error, hint});
  ssh::HostResult& result = checked.result;
  if (result.failure != ssh::Failure::none) {
    result.error += "; " + error;
  } else {
    result.fail(ssh::Failure::not_started, std::move(error), std::move(hint));
  }
}

/// Why the host's own trainer is not fit.
Lack trainer_lack(const Needs& needs, const host::CheckReply& reply) {
  const std::string& version = reply.trainer_version;
  if (reply.trainer.empty()) {
    return {"trainer", "dtool-trainer is not there",
            "install dtool on the host (cmake --install), or put dtool-trainer and "
            "dtool-trainer-worker into its ~/.dtool/bin"};
  }
  if (!reply.missing_libraries.empty()) {
    return {"trainer", fmt::format("{} lacks {}", reply.trainer, reply.missing_libraries),
            "install LibTorch there (apt-get install libtorch1.13 libgloo0)"};
  }
  if (needs.environment.container && !version.starts_with("dtool-trainer ")) {
    return {"trainer", fmt::format("{} does not run in the container: {}", reply.trainer, version),
            "the image must contain LibTorch and the other libraries; --bind can add them"};
  }
  return {"trainer",
          fmt::format("{} is not of version {}: it says {}", reply.trainer,
                      killfiles::dtool_version(), version),
          "install the same dtool everywhere; LibTorch belongs to it (apt-get install libtorch1.13 "
          "libgloo0)"};
}

/// Why a login host cannot tell which PyTorch the nodes will find; empty: it can.
std::string unseen_pytorch(const Checked& checked) {
  const std::string why = unseen_container(checked.environment);
  return why.empty() ? "" : "this host cannot look into the container: " + why;
}

constexpr const char* kHintAtUnseen =
    "name a login host that can, or a PyTorch outside a container (--env_activate_path)";

void judge_trainer(const Needs& needs, Checked& checked) {
  const host::PyTorch& pytorch = checked.reply->pytorch;
  checked.trainer = checked.reply->trainer;
  if (checked.reply->is_trainer_fit) {
    const std::string unseen = pytorch.folder.empty() ? "" : unseen_pytorch(checked);
    if (!unseen.empty()) {
      set_lack(checked, "trainer",
               fmt::format("{} uses a PyTorch, and {}", checked.trainer, unseen), kHintAtUnseen);
    } else if (pytorch.folder.empty() || host::can_be_searched(pytorch.folder)) {
      checked.pytorch = pytorch.folder;
    } else {
      set_lack(checked, "answer", "its answer cannot be read: its PyTorch's folder is not one", "");
    }
    return;
  }
  Lack lack = trainer_lack(needs, *checked.reply);
  if (needs.sends_trainer) {
    checked.awaited_trainer = std::move(lack);
  } else {
    set_lack(checked, std::move(lack.what), std::move(lack.error), std::move(lack.hint));
  }
}

/// A number that the host answered. One that cannot be is a failure of that host.
int take_number(std::int64_t number, const char* name, int most, Checked& checked) {
  if (number >= 0 && number <= most) return static_cast<int>(number);
  set_lack(checked, "answer",
           fmt::format("its answer {}={} is not from 0 to {}", name, number, most), "");
  return 0;
}

/// Turns `dtool-trainer: experiment:3:1: SENTENCE hint: HINT`, a one-line answer, into a sentence
/// and a separate line for the hint. The place is dropped: it is in the merged text, which the user
/// has not seen.
std::string readable_fault(std::string text) {
  constexpr std::string_view kProgram = "dtool-trainer: ";
  constexpr std::string_view kFile = "experiment:";
  if (text.starts_with(kProgram)) {
    text.erase(0, kProgram.size());
    const std::size_t end = text.find_first_not_of("0123456789:", kFile.size());
    if (text.starts_with(kFile) && end != text.npos && text[end] == ' ') text.erase(0, end + 1);
  }
  const std::size_t hint = text.rfind(" hint: ");
  if (hint != text.npos) text.replace(hint, 1, "\n");
  return text;
}

void judge_listener(const Needs& needs, Checked& checked) {
  const host::CheckReply& reply = *checked.reply;
  if (reply.is_port_taken) {
    set_lack(checked, "port", fmt::format("something listens on port {} already", needs.port),
             "--distributed_ip_and_port auto takes a free one");
  }
  if (reply.lacks_port) {
    set_lack(checked, "port", "no port from 20000 to 31999 is free: programs there have them all",
             "end those programs, or name another host first");
  }
  checked.address = reply.address;
  if (!checked.address.empty() && !ssh::is_address(checked.address)) {
    set_lack(checked, "address", "its answer cannot be read: its address is not one", "");
    checked.address.clear();
  }
  checked.port = static_cast<std::uint16_t>(take_number(reply.port, "port", 65535, checked));
  checked.coordinator_port = static_cast<std::uint16_t>(
      take_number(reply.coordinator_port, "coordinator_port", 65535, checked));
}

void judge(Checked& checked, const Needs& needs) {
  const ssh::HostResult& result = checked.result;
  if (result.failure != ssh::Failure::none) return;
  try {
    checked.reply = ssh::read_reply<host::CheckReply>(result);
  } catch (const host::BadMessage& error) {
    set_lack(checked, "answer", fmt::format("the host cannot be looked at: {}", error.what()), "");
    return;
  }
  const host::CheckReply& reply = *checked.reply;
  for (auto& [name, value] : host::read_pairs(reply.environment))
    checked.environment.emplace(std::move(name), std::move(value));
  for (Lack& lack : program_lacks(reply.lacks))
    set_lack(checked, std::move(lack.what), std::move(lack.error), std::move(lack.hint));
  if (reply.few_inodes) {
    set_lack(
        checked, "home",
        fmt::format("the disk of ~/.dtool has inodes for only {} more files", *reply.few_inodes),
        "a run keeps its state there: remove files from that disk (df -i ~/.dtool there shows "
        "its inodes)");
  } else if (reply.is_home_read_only) {
    set_lack(
        checked, "home", "nothing can be written into ~/.dtool",
        "a run keeps its state there: look at the folder's owner, and whether the disk is full or "
        "read-only");
  }
  for (Lack& lack : environment_lacks(checked.environment, reply.lacks.package_manager, needs))
    set_lack(checked, std::move(lack.what), std::move(lack.error), std::move(lack.hint));
  if (reply.lacks_torchrun) {
    set_lack(checked, "torchrun", "--torchrun: neither torchrun nor a Python with torch is there",
             "--env_activate_path, --modules or --container leads to one");
  }
  if (!reply.missing_code.empty()) {
    set_lack(checked, "code",
             fmt::format("there is no folder {}, and --no_sync sends no code", reply.missing_code),
             "");
  }
  if (!reply.stranger.empty())
    set_lack(checked, "owner", reply.stranger,
             "name a folder of your own (--code_path, --output_dir), or have it given to you");
  if (needs.trainer && reply.is_environment_ready) judge_trainer(needs, checked);
  if (const auto error = ssh::find_answer(checked.environment, "launcher_lack")) {
    set_lack(checked, "launcher", *error,
             ssh::find_answer(checked.environment, "launcher_hint").value_or(""));
  }
  checked.experiment_fault = readable_fault(reply.experiment_fault);
  checked.gpus = take_number(reply.gpus, "gpus", 1024, checked);
  if (!reply.gpu_lack.empty()) {
    set_lack(checked, "gpus", fmt::format("--gpus {}: {}", needs.gpus, reply.gpu_lack),
             "nvidia-smi -L lists a host's GPUs");
  }
  judge_listener(needs, checked);
  checked.logout_kills = reply.logout_kills;
  checked.identity = identity_of(reply.host, result);
}

/// Handles the answers of the hosts in one call of check_hosts, and their next steps.
class Checking : public AnswerCount {
 public:
  Checking(Console& console, const std::vector<ssh::Host>& hosts, const Needs& needs,
           tree_sync::Pushing* push)
      : AnswerCount(console, hosts, "looked at"),
        needs_(needs),
        push_(push),
        checked_(hosts.size()),
        answered_(hosts.size()),
        pushes_(hosts.size()) {}

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override {
    if (pushes_[host]) push_->on_output(host, stream, bytes);
  }

  void on_progress(std::size_t host, const ssh::Transferred& input) override {
    if (pushes_[host]) push_->on_progress(host, input);
  }

  /// While some are looked at and others are sent the code, both lines would take turns.
  void on_silence(const std::vector<std::size_t>& waiting) override {
    const bool are_sent = std::ranges::all_of(waiting, [this](auto host) { return pushes_[host]; });
    if (are_sent && push_ != nullptr) {
      push_->on_silence(waiting);
    } else {
      AnswerCount::on_silence(waiting);
    }
  }

  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override {
    if (pushes_[host]) return push_->next_task(host, result);
    take(host, result);
    const Checked& checked = checked_[host];
    pushes_[host] = push_ != nullptr && checked.result.ok() && !checked.awaits_trainer() &&
                    checked.experiment_fault.empty();
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
    AnswerCount::on_result(host, result);
  }

  const Needs& needs_;
  tree_sync::Pushing* push_;
  std::vector<Checked> checked_;
  std::vector<bool> answered_;  ///< whether each host has been looked at, or cannot be
  std::vector<bool> pushes_;    ///< whether each host has come to the push
};

}  // namespace

void offer_trainer(Needs& needs) {
  needs.sends_trainer = std::filesystem::exists(trainer_beside());
  const auto known = known_trainer_bundle();
  if (known) name_bundle(*known, needs);
}

void name_bundle(const TrainerBundle& bundle, Needs& needs) {
  needs.trainer_bundle = bundle.hash;
  needs.bundle_pytorch = bundle.pytorch ? bundle.pytorch->version : "";
}

namespace {

/// PyPI's packages are named without what comes after the `+`.
std::string hint_at_pytorch(const TrainerBundle::UsedPyTorch& used, const Needs& needs,
                            const Checked& checked) {
  if (!unseen_pytorch(checked).empty()) return kHintAtUnseen;
  if (needs.environment_comes_later)
    return "the environment is in the code folder, which dtool run EXPERIMENT.toml sends: it sends "
           "the trainer after it";
  return fmt::format(
      "--env_activate_path, --modules or --container leads to a Python with it; pip install "
      "torch=={} makes one",
      used.version.substr(0, used.version.find('+')));
}

}  // namespace

BundleForHosts bundle_for(Console& console, const Needs& needs, std::vector<Checked>& checked) {
  BundleForHosts found;
  std::string fault;
  try {
    found.bundle = read_trainer_bundle(console);
  } catch (const std::runtime_error& error) {
    fault = error.what();
  }
  for (std::size_t i = 0; i < checked.size(); ++i) {
    if (!checked[i].awaits_trainer()) continue;
    const Lack lack = *checked[i].awaited_trainer;
    const host::CheckReply& reply = *checked[i].reply;
    std::string why = fault.empty() ? misfit(found.bundle, reply.processor, reply.libc) : fault;
    std::string hint = lack.hint;
    if (why.empty()) {
      why = misfit(found.bundle, reply.pytorch, unseen_pytorch(checked[i]));
      if (!why.empty()) hint = hint_at_pytorch(*found.bundle.pytorch, needs, checked[i]);
    }
    if (why.empty()) {
      found.places.push_back(i);
    } else {
      set_lack(checked[i], lack.what, lack.error + "; none can be sent: " + why, hint);
    }
  }
  return found;
}

killfiles::HostIdentity identity_of(const std::string& line, const ssh::HostResult& result) {
  killfiles::HostIdentity identity =
      killfiles::parse_identity(line).value_or(killfiles::HostIdentity());
  if (identity.is_known()) identity.host_key = result.host_key;
  return identity;
}

std::vector<Checked> check_hosts(Console& console, ssh::Remote& remote, const Needs& needs,
                                 tree_sync::Pushing* push) {
  const auto& hosts = remote.hosts();
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    tasks.push_back({i, ssh::ask_host(make_request(needs, i))});
  Checking checking(console, hosts, needs, push);
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(60);
  options.follows = ssh::Follows::more;
  if (push != nullptr) options.on_interrupt = ssh::OnInterrupt::leave;  // sending may take long
  remote.run(std::move(tasks), checking, options);
  return checking.take_all();
}

std::vector<ssh::Host> cut_off(const std::string& address, const std::vector<Checked>& checked) {
  std::vector<ssh::Host> hosts;
  for (std::size_t i = 1; i < checked.size() && is_loopback(address); ++i) {
    if (compare(checked[0].identity, checked[i].identity) != killfiles::Likeness::same)
      hosts.push_back(checked[i].result.host);
  }
  return hosts;
}

}  // namespace dtool::cli
