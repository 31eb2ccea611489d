// SPDX-License-Identifier: MIT
#include "ssh/fanout/host_program.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "killfiles/printable.h"
#include "ssh/host_error.h"
#include "ssh/quote.h"

extern "C" {
extern const char dtool_host_begin[];  // host_program.S
extern const char dtool_host_end[];
extern const char dtool_host_gz_begin[];
extern const char dtool_host_gz_end[];
extern const char dtool_host_2_begin[];
extern const char dtool_host_2_end[];
extern const char dtool_host_2_gz_begin[];
extern const char dtool_host_2_gz_end[];
}

namespace dtool::ssh {
namespace {

constexpr std::string_view kHasGzip = " with gzip";

/// Its possible folders, in this order; the home folder may be mounted so that programs in it do
/// not run. A folder that others could have made is used only if `own` finds that it is the user's.
constexpr std::string_view kFolders =
    "\"${HOME:-/}/.dtool/host\" \"${XDG_RUNTIME_DIR:-/}/dtool-host\" "
    "\"/var/tmp/dtool-host-$(id -u)\" \"/tmp/dtool-host-$(id -u)\"";

/// Whether the folder at this very path, and not at the end of a link, belongs to the user; in /tmp
/// nobody else can move it then. Two questions about the path would not do: another user can put a
/// link to a folder of the user's there for the first, and a folder of his own for the second. The
/// kernel says where the shell is: bash's `pwd -P` would look at the path again.
constexpr std::string_view kOwn =
    "own() { [ \"$(cd \"$1\" 2>/dev/null && [ -O . ] && readlink /proc/self/cwd)\" = "
    "\"$(cd \"${1%/*}\" 2>/dev/null && readlink /proc/self/cwd)/${1##*/}\" ]; }; ";

/// Whether the program at $p, of the name $s, is what was sent: a disk may have lost parts of it.
/// If it is not, it goes, so that it is brought again. Its exit code alone would prove nothing: to
/// a shell an empty file is a script that ends well.
constexpr std::string_view kWhole =
    "whole() { [ \"$(\"$p\" verify \"$s\" 2>/dev/null)\" = \"$s\" ] || { rm -f \"$p\"; false; }; "
    "}; ";

constexpr std::string_view kIfBoth =
    "is \"$h/${n% *}/dtool-host\" && is \"$h/${n#* }/dtool-host\" && ";

/// Whether a program may be there; a folder says that it may be entered.
constexpr std::string_view kIs = "is() { [ -f \"$1\" ] && [ -x \"$1\" ]; }; ";

struct HostProgram {
  std::string_view bytes;
  std::string_view gzipped;
};

const std::array<HostProgram, 2> kHostPrograms = {
    HostProgram{{dtool_host_begin, dtool_host_end}, {dtool_host_gz_begin, dtool_host_gz_end}},
    HostProgram{{dtool_host_2_begin, dtool_host_2_end},
                {dtool_host_2_gz_begin, dtool_host_2_gz_end}}};

/// `x86_64 or aarch64`
std::string known_machines() {
  std::string names;
  for (const HostProgramName& each : host_program_names())
    names += fmt::format("{}{}", names.empty() ? "" : " or ", each.machine);
  return names;
}

/// Takes the program on standard input through the filter `unpack`, once it has found a folder that
/// has room for it and in which programs run.
std::string bring_line(std::string_view sha256, std::size_t size, std::string_view unpack) {
  return fmt::format(
      "exec sh -c 'umask 077; {}for d in {}; do "
      "case $d in //*) continue;; esac; "
      "mkdir -p \"$d\" 2>/dev/null; own \"$d\" && chmod 700 \"$d\" && "
      "mkdir -p \"$d/$0\" || continue; "
      "n=$d/$0/new.$$.$(uname -n); "
      "( head -c {} /dev/zero > \"$n\" && chmod 700 \"$n\" && [ -x \"$n\" ] ) 2>/dev/null || "
      "{{ rm -f \"$n\"; continue; }}; "
      "{} > \"$n\" && [ \"$(\"$n\" verify \"$0\")\" = \"$0\" ] && "
      "{{ [ ! -d \"$d/$0/dtool-host\" ] || rm -rf \"$d/$0/dtool-host\"; }} && "
      "mv -f \"$n\" \"$d/$0/dtool-host\" && exit 0; "
      "rm -f \"$n\"; echo \"$d cannot hold it: is the disk full?\" >&2; exit 1; done; "
      "echo \"no folder was found in which programs may be put and run: {}\" >&2; exit 1' {}",
      kOwn, kFolders, size, unpack, "~/.dtool/host, XDG_RUNTIME_DIR, /var/tmp, /tmp", sha256);
}

}  // namespace

asio::awaitable<void> bring_host_program(Connection& connection, std::string system,
                                         Deadline deadline) {
  const bool has_gzip = system.ends_with(kHasGzip);
  if (has_gzip) system.resize(system.size() - kHasGzip.size());
  std::size_t chosen = 0;
  while (chosen < host_program_names().size() &&
         system != fmt::format("Linux {}", host_program_names()[chosen].machine))
    ++chosen;
  if (chosen == host_program_names().size())
    throw HostError(Failure::host_program,
                    fmt::format("it is {}, and this dtool has dtool-host for Linux {} only",
                                killfiles::printable_words(system, 100), known_machines()));
  std::string said;
  CommandStreams streams;
  const HostProgram& program = kHostPrograms.at(chosen);
  streams.input = has_gzip ? program.gzipped : program.bytes;
  streams.on_output = [&said](Stream stream, std::string_view bytes) {
    if (stream == Stream::err && said.size() < 4096) said += bytes;
  };
  std::string line = bring_line(host_program_names()[chosen].sha256, program.bytes.size(),
                                has_gzip ? "gzip -dc" : "cat");
  const int exit_code = co_await connection.execute(std::move(line), std::move(streams), deadline);
  if (exit_code == 0) co_return;
  const std::string why = said.empty() ? fmt::format("exit code {}", exit_code) : said;
  throw HostError(Failure::host_program, fmt::format("dtool-host cannot be put on it: {}",
                                                     killfiles::printable_words(why, 500)));
}

HostError not_begun(int exit_code, const std::string& out, const std::string& errors) {
  const std::string said = killfiles::printable_words(errors.empty() ? out : errors, 200);
  const auto fail = [](std::string sentence, std::string hint) {
    return HostError(Failure::host_program, std::move(sentence), std::move(hint));
  };
  const std::string_view all = errors;
  if (all.find("Resource temporarily unavailable") != all.npos || all.find("fork") != all.npos)
    return fail(fmt::format("no process can be started on it: {}", said),
                "it is at a limit of processes (ulimit -u, a pids cgroup): end some from a shell "
                "that is open there");
  constexpr int kSignal = 128;
  if (exit_code > kSignal)
    return fail(fmt::format("signal {} ended the log-in before dtool-host began{}{}",
                            exit_code - kSignal, said.empty() ? "" : ": ", said),
                "does its ~/.bashrc, or limits.conf, set a limit (ulimit) that is too low?");
  if (!said.empty())
    return fail(fmt::format("dtool-host did not begin (exit code {}): {}", exit_code, said),
                "that comes from its log-in shell, ~/.bashrc or a ForceCommand");
  if (exit_code == 0 || exit_code == kHostProgramMissing)
    return fail(fmt::format("a log-in there runs no command, or its output does not come here "
                            "(exit code {})",
                            exit_code),
                "does its ~/.bashrc have an exit, exec or redirection, or sshd_config a "
                "ForceCommand?");
  return fail(fmt::format("a log-in there runs no command (exit code {})", exit_code),
              "is the user's log-in shell /bin/false or nologin, or is there no POSIX shell, sh?");
}

std::string host_program_line(Damaged damaged, const std::vector<std::string>& words) {
  // All shells read this alike: one word in single quotes. Only where the home folder lacks the
  // program does it cost more than one shell, or has two of them: hosts of both processors share
  // it. A program that is not what dtool sent is the host's own processor's.
  const bool removes = damaged == Damaged::is_removed;
  std::string names;
  std::string by_machine;
  for (const HostProgramName& each : host_program_names()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", each.sha256);
    by_machine += fmt::format("{}) n={};; ", each.machine, each.sha256);
  }
  return fmt::format(
      "exec sh -c 'h=${{HOME:-/}}/.dtool/host; n=\"{}\"; {}{}"
      "{}case $(uname -m) in {}esac; "
      "begin() {{ case $1 in serve) echo {};; esac; exec \"$p\" \"$@\"; }}; "
      "for s in $n; do p=$h/$s/dtool-host; is \"$p\" && {}begin \"$@\"; done; "
      "{}for d in {}; do for s in $n; do p=$d/$s/dtool-host; "
      "is \"$p\" && own \"$d\" && {}begin \"$@\"; done; done; "
      "g=; (echo | gzip -c) >/dev/null 2>&1 && g=\"{}\"; echo \"{}$(uname -sm)$g\"; exit {}' "
      "dtool {}",
      names, kIs, removes ? kWhole : "", removes ? "" : kIfBoth, by_machine,
      kHostProgramBegins.substr(0, kHostProgramBegins.size() - 1), removes ? "whole && " : "", kOwn,
      kFolders, removes ? "whole && " : "", kHasGzip, kHostProgramNeeded, kHostProgramMissing,
      quote_all(words));
}

}  // namespace dtool::ssh
