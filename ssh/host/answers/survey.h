// SPDX-License-Identifier: MIT
// Facts about a host: versions, memory, disks, which no run needs but its user wants to know; its
// runs; and what it lacks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/answers/gpus.h"
#include "ssh/wire/check.h"

namespace dtool::host {

/// Cores, memory and GPUs; takes no time.
Hardware find_hardware(const HostGpus& gpus);

/// `code`: a folder on the disk of the code.
Survey survey_host(const std::string& code);

/// This process's user, by the login's name; the number if the name is missing.
std::string user_name();

/// The field of the user's line in the text of /etc/passwd, counted from 0; empty if there is none.
std::string passwd_field(std::string_view passwd, uid_t user, std::size_t wanted);

/// The cores that control groups, and those above them, leave their processes, rounded down;
/// nothing if none of them sets a limit. `groups`: the text of /proc/self/cgroup; `folder`:
/// /sys/fs/cgroup.
std::optional<std::int64_t> quota_of_cores(std::string_view groups, const std::string& folder);

/// A line of the text of /proc/meminfo, such as `MemTotal:`, in bytes; 0 if it is missing.
std::int64_t memory_of(std::string_view meminfo, std::string_view wanted);

/// `127.0.1.1` if the text of /etc/hosts leads the machine's own name there; else empty. By such an
/// address no other machine reaches it.
std::string loopback_of(std::string_view hosts, std::string_view name);

// Which runs go on on this host, and what they may still need of what dtool brought here.

/// A run that has not ended and may use what has this hash in its path: a trainer, an environment.
/// On this host or on another with this home folder: a run's script names them. Empty: there is
/// none.
std::string run_that_uses(const std::string& hash);

/// Marks the version in that folder as used (versions.h), and deletes those beside it that were not
/// used for 30 days, and that no run uses.
void use_version(const std::string& folder);

/// The runs that have processes of this user's here and have not ended, sorted. The ids are as the
/// processes bear them, and may be any text.
std::vector<std::string> running_runs();

// What a host lacks of the programs that dtool's scripts use.

/// Whether screen is only looked for, or also tried.
enum class Screen { found, tried };

/// Whether scripts run there beside the run's own.
enum class Scripts { none, some };

ProgramLacks find_lacks(const Wants& wants, Screen screen, Scripts scripts);

/// The value of a name in /etc/os-release, without quotes; empty if it is missing.
std::string os_release(std::string_view name);

/// The same in a text of that file.
std::string value_of_release(std::string_view release, std::string_view name);

/// The host's package manager: the one of the system's own kind, else the first that is there;
/// empty if there is none. `kinds`: ID and ID_LIKE of /etc/os-release.
std::string find_package_manager(std::string_view kinds);

/// The first number like 5.2 or 5.2.15 in the first MiB of a program's --version output; empty if
/// the program is missing or prints none.
std::string version_of(const std::string& program);

}  // namespace dtool::host
