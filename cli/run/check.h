// Looks whether every host can run its part, in one round trip a host, before anything is sent or
// started. `dtool run` asks for what it needs; `dtool check` asks the same and more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/run/environment/environment.h"
#include "killfiles/host_identity.h"
#include "ssh/host/protocol.h"
#include "ssh/remote.h"
#include "ssh/script.h"
#include "sync/push.h"

namespace dtool::cli {

/// Whether hosts are also asked what no run needs to know: versions, cores, memory, disks.
enum class Survey { no, yes };

/// What the run will need.
struct Needs {
  std::string run_id;                     ///< empty: no run's folder is made
  std::vector<std::string> code_folders;  ///< one a host
  bool code_must_exist = false;           ///< it is not going to be sent
  Environment environment;                ///< as far as it has to be there already
  bool trainer = false;                   ///< the bundled one
  std::string experiment_toml;            ///< for machine 0's trainer to check; empty: none
  int machines = 1;                       ///< of the run
  bool session = true;                    ///< that outlives the log-in: screen, tmux or setsid
  bool runs_here = true;                  ///< and not on nodes behind these hosts
  bool sync = false;                      ///< code is sent there
  std::uint16_t port = 0;                 ///< on machine 0; 0: any that is free
  Survey survey = Survey::no;
  /// What the launcher asks of each host: bash that says what is lacking with `lack_of ERROR HINT`
  /// (environment/scripts/ready.sh); empty: nothing.
  std::vector<std::string> launcher_checks;
};

/// Something that a host lacks.
struct Lack {
  std::string what;  ///< `programs`, `trainer`, `modules`, `activate`, `container`, `torchrun`,
                     ///< `code`, `port`, `launcher`, `answer`
  std::string error;
  std::string hint;
};

/// What one host answered; meaningful where its result is ok.
struct Checked {
  ssh::HostResult result;   ///< a lack is a failure, with how to mend it
  std::vector<Lack> lacks;  ///< the same, one by one; none if the host did not answer
  std::optional<host::CheckReply> reply;  ///< nothing: it cannot be read
  ssh::Answers environment;               ///< what its environment's script answered
  int gpus = 0;
  std::string experiment_fault;  ///< what machine 0's trainer says of the experiment; empty: well
  std::string trainer;           ///< path of the bundled trainer there
  std::string address;           ///< of machine 0, as others reach it
  std::uint16_t port = 0;        ///< of machine 0
  std::uint16_t coordinator_port = 0;  ///< another one there that is free
  killfiles::HostIdentity identity;    ///< who it is; unknown if it does not say
  bool logout_kills = false;           ///< the system ends what users leave running at logout
};

/// Asks all hosts. Each that lacks nothing has the run's folder afterwards, where there is a run,
/// and goes on at once with `push`, where there is one, whatever the others still have to answer.
std::vector<Checked> check_hosts(Console& console, ssh::Remote& remote, const Needs& needs,
                                 tree_sync::Pushing* push = nullptr);

/// Who the host is, by its own words (ssh/host/identity.h) and the key of its server; unknown if
/// it did not say.
killfiles::HostIdentity identity_of(const std::string& line, const ssh::HostResult& result);

}  // namespace dtool::cli
