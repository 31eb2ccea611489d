// SPDX-License-Identifier: MIT
// Checks whether every host can run its part, in one round trip per host, before anything is sent
// or started. `dtool run` checks what it needs; `dtool check` checks that and more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/plan/environment.h"
#include "cli/ready/trainer_bundle.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"
#include "ssh/script.h"
#include "ssh/wire/check.h"
#include "sync/push/push.h"

namespace dtool::cli {

/// Whether to ask also for facts that no run needs: versions, cores, memory, disks.
enum class AskedFacts { needed, all };

/// What the run will need.
struct Needs {
  std::string run_id;                     ///< empty: no folder is made for a run
  std::vector<std::string> code_folders;  ///< one per host
  bool code_must_exist = false;           ///< the code will not be sent
  std::string outputs;  ///< the run's output folder, which may begin in the code folder; or empty
  Environment environment;               ///< only the parts that must exist already
  bool environment_comes_later = false;  ///< its other parts are in the code that a run sends
  bool trainer = false;                  ///< the bundled trainer
  /// Whether a bundle of the trainer is sent to hosts that have none; its hash if it is known.
  bool sends_trainer = false;
  std::string trainer_bundle;
  std::string bundle_pytorch;  ///< version of the PyTorch that it uses; empty: none
  /// The experiment that machine 0's trainer is to check; empty: none.
  std::string experiment_toml;
  int machines = 1;        ///< the number of the run's machines
  bool session = true;     ///< one that survives the end of the login: screen, tmux or setsid
  bool runs_here = true;   ///< false: on nodes behind these hosts
  std::uint16_t port = 0;  ///< the port on machine 0; 0: any free port
  std::string peer;  ///< the name or address of another machine, as peer_of() tells it; or empty
  host::VisibleGpus visible_gpus;  ///< the values that the run's user gave
  std::string gpus;                ///< the list of --gpus, all of which must be there
  bool is_supervised = false;      ///< machine 0's session listens for those of the others
  AskedFacts facts = AskedFacts::needed;
  /// What the launcher checks on each host: bash that reports a lack with `lack_of ERROR HINT`
  /// (cli/plan/scripts/ready.sh); empty: nothing.
  std::vector<std::string> engine_checks;
};

/// Something that a host lacks.
struct Lack {
  std::string what;  ///< `programs`, `trainer`, `modules`, `activate`, `container`, `torchrun`,
                     ///< `code`, `owner`, `gpus`, `port`, `launcher`, `answer`
  std::string error;
  std::string hint;
};

/// One host's answer; meaningful if its result is ok.
struct Checked {
  ssh::HostResult result;                 ///< a lack is a failure, with a hint at how to mend it
  std::vector<Lack> lacks;                ///< one by one; empty if the host did not answer
  std::optional<host::CheckReply> reply;  ///< nothing: unreadable
  ssh::Answers environment;               ///< answers of its environment's script
  int gpus = 0;                           ///< the number of GPUs that the run's processes will see
  /// The text that machine 0's trainer says against the experiment; empty: nothing.
  std::string experiment_fault;
  std::string trainer;                  ///< path of the bundled trainer there
  std::string pytorch;                  ///< folder of the PyTorch that it uses; empty: none
  std::optional<Lack> awaited_trainer;  ///< why it has none that is fit, if one will be sent
  std::string address;                  ///< machine 0's address for the other machines
  std::uint16_t port = 0;               ///< machine 0's port
  std::uint16_t coordinator_port = 0;   ///< machine 0's coordinator port, if the run is supervised
  killfiles::HostIdentity identity;     ///< the host's identity; unknown if it did not say
  bool logout_kills = false;            ///< the system ends a user's processes at logout

  bool awaits_trainer() const { return awaited_trainer.has_value(); }
};

/// Asks all hosts. If there is a run, each host makes its folder. A host that lacks nothing and
/// awaits no trainer continues at once with `push`, if one is given, without waiting for the
/// others.
std::vector<Checked> check_hosts(Console& console, ssh::Remote& remote, const Needs& needs,
                                 tree_sync::Pushing* push = nullptr);

/// Whether the trainer of this machine may be sent, and which one it is.
void offer_trainer(Needs& needs);

/// The bundle that hosts may have.
void name_bundle(const TrainerBundle& bundle, Needs& needs);

/// A bundle and the places of the hosts that are to get it.
struct BundleForHosts {
  TrainerBundle bundle;
  std::vector<std::size_t> places;
};

/// The bundle for the hosts that await the trainer. If there is none, or it does not fit a host,
/// that host fails with the reason.
BundleForHosts bundle_for(Console& console, const Needs& needs, std::vector<Checked>& checked);

/// The machines that cannot reach rank 0 at `address`, since it is a loopback address and they are
/// not where rank 0 is.
std::vector<ssh::Host> cut_off(const std::string& address, const std::vector<Checked>& checked);

/// Who the host is: its own words (ssh/host/process_table.h) and the key of its server; unknown if
/// it did not say.
killfiles::HostIdentity identity_of(const std::string& line, const ssh::HostResult& result);

// What hosts lack for a run's environment, from the answers of scripts/ready.sh.

/// Variables of the log-in, `NAME=VALUE`, that do not count beside the environment that was named.
std::vector<std::string> left_out_variables(const ssh::Answers& answers);

/// Modules, an environment, an image or an engine that is missing or does not work, each with a
/// hint at how to mend it; `needs` says whether a run will send some of it.
std::vector<Lack> environment_lacks(const ssh::Answers& answers, std::string_view package_manager,
                                    const Needs& needs = {});

/// Why a login host could not look into the container that its nodes will enter; empty: it could,
/// or there is none.
std::string unseen_container(const ssh::Answers& answers);

// What hosts lack of the programs that dtool's scripts use, and a command that installs them.

/// Programs that are missing or do not work, and a home folder in which no file can be locked; each
/// with a hint at how to mend it.
std::vector<Lack> program_lacks(const host::ProgramLacks& lacks);

/// A hint: the `dtool command` that makes the host's own package manager install `programs`.
/// Programs that dtool does not use are left out; if none remains, the hint is empty.
std::string install_hint(std::string_view package_manager,
                         const std::vector<std::string>& programs);

}  // namespace dtool::cli
