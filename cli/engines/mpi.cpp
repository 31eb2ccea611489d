// SPDX-License-Identifier: MIT
// Open MPI's mpirun as the engine. On machine 0 a session runs mpirun, which reaches the other
// machines by its own ssh and starts all processes, a `dtool-host rank` each
// (ssh/host/session/rank.h); on each machine a session keeps watch over those there
// (keep_ranks.sh), so that the run is supervised, followed and ended as one over SSH is.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/engines/engine.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/plan/flags.h"
#include "cli/scripts.h"
#include "ssh/config/client_config.h"
#include "ssh/quote.h"
#include "ssh/remote.h"
#include "ssh/script.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

/// Arguments that dtool itself gives to mpirun, without the dashes.
constexpr std::array kOwnArguments = {
    "np",   "n",    "c",        "hostfile", "machinefile",    "default-hostfile",
    "host", "H",    "map-by",   "bynode",   "byslot",         "npernode",
    "N",    "ppr",  "rankfile", "rf",       "rank-by",        "tune",
    "app",  "wdir", "wd",       "prefix",   "nooversubscribe"};

/// The words of --mpirun_arg. Throws UsageError on those that would say otherwise than dtool where
/// the processes run.
std::vector<std::string> read_arguments(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    for (std::string& word : ssh::split_shell_words(text)) words.push_back(std::move(word));
  }
  for (const std::string& word : words) {
    const std::size_t begin = std::min(word.find_first_not_of('-'), word.size());
    if (begin == 0 || std::ranges::find(kOwnArguments, word.substr(begin)) == kOwnArguments.end())
      continue;
    throw UsageError(
        fmt::format("--mpirun_arg {}: dtool tells mpirun itself where the processes run", word),
        "--runs_on or --hostfile say on which hosts, their slots or --nproc_per_node how many");
  }
  return words;
}

/// The host as machine 0's ssh is told it: by the name that the user typed, with a user and a port
/// where they are not what ssh takes by itself.
ssh::Host peer_of(const ssh::Host& host, const ssh::ClientConfig& config, const std::string& user) {
  ssh::Host peer = host;
  if (host.is_local) return peer;
  const ssh::Endpoint endpoint = config.resolve(host);
  if (endpoint.user != user) peer.user = endpoint.user;
  constexpr std::uint16_t kPort = 22;
  peer.port = endpoint.port == kPort ? 0 : endpoint.port;
  return peer;
}

std::string with_user(const ssh::Host& host) {
  return host.user.empty() ? host.name : host.user + "@" + host.name;
}

/// The words after `ssh` that reach the host.
std::string ssh_words(const ssh::Host& host) {
  return (host.port == 0 ? "" : fmt::format("-p {} ", host.port)) + with_user(host);
}

/// The beginning of its line in mpirun's hostfile. Machine 0 is where mpirun itself runs.
std::string hostfile_words(const MachinePlan& machine) {
  if (machine.id == 0) return "localhost";
  const ssh::Host& host = machine.peer;
  return with_user(host) + (host.port == 0 ? "" : fmt::format(" port={}", host.port));
}

template <typename Words>
std::vector<std::string> of_each(const RunPlan& plan, Words words) {
  std::vector<std::string> list;
  for (const MachinePlan& machine : plan.machines) list.push_back(words(machine));
  return list;
}

/// How many processes mpirun starts on that machine: torchrun starts the program's by itself.
int slots_of(const RunPlan& plan, const MachinePlan& machine) {
  return plan.environment.torchrun == Torchrun::yes ? 1 : machine.processes;
}

std::string slots_text(const RunPlan& plan) {
  return assign_array("slots_of", of_each(plan, [&plan](const MachinePlan& machine) {
                        return std::to_string(slots_of(plan, machine));
                      }));
}

/// `10.0.0.0/24`
bool is_network(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  return ssh::is_address(text.substr(0, slash)) &&
         host::parse_number<int>(text.substr(std::min(slash + 1, text.size())));
}

class MpiEngine : public Engine {
 public:
  std::string_view name() const override { return "mpi"; }
  std::string_view title() const override { return "mpirun"; }

  std::vector<Option> add_options(Options& command) override {
    const Option np = command.add_whole_number(
        "--np N", np_, "number of processes; they fill the hosts' slots in order (all slots)", {1});
    const Option words = command.add_option(
        "--mpirun_arg WORDS", arguments_,
        "more arguments for mpirun: --mpirun_arg='--mca btl self,tcp'; repeatable");
    return {np, words};
  }

  void place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const override {
    read_arguments(arguments_);
    const auto config =
        ssh::ClientConfig::read(targets.connect.config_file, targets.connect.settings);
    const ssh::Host& first = targets.hosts.front();
    const std::string user = first.is_local ? "" : config.resolve(first).user;
    Engine::place(flags, targets, plan);
    for (MachinePlan& machine : plan.machines) {
      if (machine.host.is_local && machine.id != 0) {
        throw UsageError(fmt::format("mpirun on the first machine, {}, cannot reach `local`",
                                     ssh::to_string(first)),
                         "name local first in --runs_on, or this machine by its name");
      }
      machine.peer = peer_of(machine.host, config, user);
      const auto slots = targets.slots[static_cast<std::size_t>(machine.id)];
      if (flags.nproc_per_node != "auto") {
        machine.processes = parse_processes(flags.nproc_per_node);
      } else if (slots) {
        machine.processes = *slots;
      }
    }
  }

  void add_needs(const RunPlan& plan, Needs& needs) const override {
    Engine::add_needs(plan, needs);
    std::vector<ssh::Host> hosts;
    for (const MachinePlan& machine : plan.machines) hosts.push_back(machine.host);
    std::string text = assign_array(
        "ssh_words", of_each(plan, [](const auto& machine) { return ssh_words(machine.peer); }));
    text += assign_array("host_names", of_each(plan, [](const MachinePlan& machine) {
                           return ssh::to_string(machine.host);
                         }));
    text += assign("install_hint",
                   hint_for(fmt::format("on Debian: dtool command --command 'sudo apt-get install "
                                        "-y openmpi-bin' --runs_on {}",
                                        ssh::kHostsInHint),
                            fold_hosts(hosts)));
    for (const auto& [name, value] : plan.variables) {
      if (name.starts_with("OMPI_MCA_plm_rsh_")) text += assign(name, value);
    }
    needs.engine_checks = {text.append(scripts::kMpi_check)};
  }

  bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                const std::vector<Checked>& checked, RunPlan& plan) const override {
    const auto [begin, end] = checked.front().environment.equal_range("mpi_network");
    for (auto each = begin; each != end; ++each) plan.networks.push_back(each->second);
    // A `local` that knows the others by its SSH configuration alone has learnt from them who it
    // is.
    const auto address = ssh::find_answer(checked.front().environment, "mpi_address");
    const bool are_known = std::ranges::all_of(
        plan.networks, [](const auto& each) { return each == "unknown" || is_network(each); });
    if (!are_known || (address && !ssh::is_address(*address))) {
      console.fail(fmt::format("{}: its answer about its networks cannot be read",
                               ssh::to_string(plan.machines.front().host)));
      return false;
    }
    // Behind a jump host or a translated address, the network is not known from here.
    if (std::ranges::find(plan.networks, "unknown") != plan.networks.end()) plan.networks.clear();
    if (address && plan.address.empty() && targets.hosts.front().is_local) plan.address = *address;
    return Engine::complete(console, flags, targets, checked, plan) &&
           (np_ == 0 || fill_slots(console, plan));
  }

  std::vector<std::pair<std::string, std::string>> texts(const RunPlan& plan) const override {
    std::string hostfile;
    for (const MachinePlan& machine : plan.machines)
      hostfile += fmt::format("{} slots={}\n", hostfile_words(machine), slots_of(plan, machine));
    return {{"hostfile for mpirun", hostfile}};
  }

  std::vector<HostJob> jobs(const RunPlan& plan) const override {
    std::vector<HostJob> jobs;
    const std::string slots = slots_text(plan);
    const std::string mpirun = mpirun_text(plan);
    for (const MachinePlan& machine : plan.machines) {
      const bool starts_mpirun = machine.id == 0;
      std::vector<std::string_view> parts = {slots, scripts::kNumbers_ssh, scripts::kEnvironment};
      if (starts_mpirun) parts.push_back(mpirun);
      parts.push_back(scripts::kKeep_ranks);
      ssh::ScreenJob job = make_supervised_job(plan, machine, parts);
      std::string rank = script_variables(plan, machine) + assign_path("log", job.log) + slots;
      rank +=
          "[ -n \"${visit+set}\" ] || exec >> \"${DTOOL_RANK_LOG:-$log}\" 2>&1\n"
          "unset DTOOL_RANK_LOG\nrank=$1 local_rank=$2\nshift 2\n";
      rank.append(scripts::kNumbers_ssh).append(scripts::kEnvironment).append(scripts::kLaunch);
      job.files.emplace_back("rank", rank);
      if (!starts_mpirun) job.files.emplace_back("../launch_orted", scripts::kLaunch_orted);
      jobs.push_back({jobs.size(), job, starts_mpirun ? StartOrder::last : StartOrder::first});
    }
    return jobs;
  }

 private:
  /// The variables of cli/engines/scripts/mpirun.sh, and the script.
  std::string mpirun_text(const RunPlan& plan) const {
    return assign_array("mpi_hosts", of_each(plan, hostfile_words)) +
           assign("networks", fmt::format("{}", fmt::join(plan.networks, ","))) +
           assign_array("mpirun_arguments", read_arguments(arguments_)) +
           assign("on_failure", plan.on_failure) + assign("run_id", plan.run_id) +
           assign("run_folder", killfiles::run_folder(plan.run_id).substr(2)) +
           std::string(scripts::kMpirun);
  }

  /// The slots that --np wants, from the first on. A host without a process would be no machine of
  /// the run.
  bool fill_slots(Console& console, RunPlan& plan) const {
    if (np_ > plan.world_size) {
      console.fail(fmt::format("--np {}: the hosts have {} slots", np_, plan.world_size),
                   "more slots in the hostfile, or --nproc_per_node, make room for more processes");
      return false;
    }
    int left = np_;
    for (MachinePlan& machine : plan.machines) {
      if (left == 0) {
        console.fail(
            fmt::format("--np {} leaves no process for {}", np_, ssh::to_string(machine.host)),
            "leave that host and those behind it out");
        return false;
      }
      machine.processes = std::min(machine.processes, left);
      left -= machine.processes;
    }
    number_ranks(plan);
    return true;
  }

  int np_ = 0;  ///< 0: one per slot
  std::vector<std::string> arguments_;
};

}  // namespace

std::unique_ptr<Engine> make_mpi_engine() {
  return std::make_unique<MpiEngine>();
}

}  // namespace dtool::cli
