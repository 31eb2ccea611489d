// SPDX-License-Identifier: MIT
// The trainer bundle: dtool-trainer, its worker and every library above libc in one folder, for
// hosts that have no trainer. It lies in `~/.dtool/trainers/SHA256` on this machine and on hosts.
// A trainer that is built for GPUs uses LibTorch and CUDA's libraries of a PyTorch on the host, in
// the place of gigabytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "ssh/wire/check.h"
#include "sync/tree.h"

namespace dtool::cli {

struct TrainerBundle {
  struct Part {
    std::string name;              ///< the name in the bundle: `lib/libc10.so.1.13`
    std::filesystem::path source;  ///< the path on this machine
    std::string stamp;             ///< the stamp of the source (ssh/machine/files.h)
  };
  /// A PyTorch from which a host takes the libraries that are no parts.
  struct UsedPyTorch {
    std::string version;         ///< `2.11.0+cu130`: the host's must be the same
    std::filesystem::path file;  ///< the file that says so, on this machine
    std::string stamp;           ///< the stamp of that file
  };

  std::string hash;                    ///< SHA-256 of the names and contents, in hex
  std::uint64_t bytes = 0;             ///< the sum of all parts' sizes
  int glibc = 0;                       ///< the least that it needs: 34 is glibc 2.34
  std::vector<Part> parts;             ///< sorted by name
  std::optional<UsedPyTorch> pytorch;  ///< nothing: all libraries are parts
};

/// The trainer that was installed or built with this dtool; hosts that share its file system have
/// it too.
std::filesystem::path trainer_beside();

/// The bundle of trainer_beside() as it was read last; nothing if it was never read, or if a file
/// has changed since.
std::optional<TrainerBundle> known_trainer_bundle();

/// The bundle of trainer_beside(): looks up its libraries, and reads all files. Throws
/// std::runtime_error with a sentence if there is no trainer, or if a library is missing here.
TrainerBundle read_trainer_bundle(Console& console);

/// `~/.dtool/trainers/SHA256`
std::string folder_of(const TrainerBundle& bundle);

/// Copies the parts into that folder on this machine, unless they are there. Throws
/// std::runtime_error.
tree_sync::Tree make_tree(const TrainerBundle& bundle);

/// `36` of `glibc 2.36`; 0: it is another libc.
int glibc_of(std::string_view libc);

/// Why the bundle cannot run on a host with this processor and libc (CheckReply); empty: it can.
std::string misfit(const TrainerBundle& bundle, const std::string& processor,
                   const std::string& libc);

/// Why it cannot use the PyTorch of a host's environment; empty: it can, or needs none. `unseen`
/// tells why dtool could not look for one; empty: it could.
std::string misfit(const TrainerBundle& bundle, const host::PyTorch& pytorch,
                   const std::string& unseen = {});

}  // namespace dtool::cli
