// SPDX-License-Identifier: MIT
// dtool-host: dtool's program on the hosts. dtool sends it to a host once and starts it there.
// Users do not run it.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/answers/answers.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/kill.h"
#include "ssh/host/network.h"
#include "ssh/host/session/guard.h"
#include "ssh/host/session/last_words.h"
#include "ssh/host/session/rank.h"
#include "ssh/host/session/report_port.h"
#include "ssh/host/session/scheduled_job.h"
#include "ssh/host/session/session.h"
#include "ssh/wire/run.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

/// Says so if this very program has the content that dtool sent, on the disk: what was written may
/// be cut off.
int verify(const std::string& expected) {
  const Descriptor self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (self.is_open()) flush_to_disk(self.get(), "dtool-host");
  const auto content = read_file("/proc/self/exe", std::size_t{1} << 30U);
  if (!content || to_hex(sha256(*content)) != expected) return 1;
  write_all(STDOUT_FILENO, expected + "\n");
  return 0;
}

/// Ends what there is of a run on this host. Its other hosts are not asked: a scheduler's job
/// called this here.
int end_here(const std::string& run_id) {
  const KillReply reply = end_processes(run_id, std::chrono::seconds(5), {});
  for (const std::string& each : reply.left) write_all(STDOUT_FILENO, "left: " + each + "\n");
  return reply.left.empty() ? 0 : 1;
}

int tell_free_port() {
  const std::uint16_t port = find_free_port(listening_ports());
  if (port == 0) throw std::runtime_error("no port from 20000 to 31999 is free");
  write_all(STDOUT_FILENO, std::to_string(port) + "\n");
  return 0;
}

/// The interface by which machine `id` of a run reaches rank 0's address. On rank 0's own machine
/// that is the one that has the address: the route to oneself is lo, and peers told lo's address
/// would reach themselves.
int tell_interface(const std::string& id, std::string address) {
  if (parse_address(address, 1).size == 0) {
    const ChildResult found = run_program({"getent", "ahosts", address}, std::chrono::seconds(20));
    std::string_view line = found.out;
    address = cut_word(line);
  }
  if (id != "0") address = local_address_towards(parse_address(address, 1));
  const std::string name = interface_of(address);
  if (name != "lo") write_all(STDOUT_FILENO, name + "\n");
  return 0;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "serve") return serve(STDIN_FILENO, STDOUT_FILENO);
  if (words.size() == 2 && words[0] == "verify") return verify(words[1]);
  if (words.size() == 2 && words[0] == "session") return run_session(words[1]);
  if (words.size() >= 3 && words[0] == "visit") return run_visit({words.begin() + 1, words.end()});
  if (words.size() == 1 && words[0] == "guard") return run_guard();
  if (words.size() == 4 && words[0] == "hold") return run_port_holder(words[1], words[2], words[3]);
  if (words.size() == 2 && words[0] == "end") return end_here(words[1]);
  if (words.size() == 2 && words[0] == "await_job") return await_job(words[1]);
  if (words.size() == 1 && words[0] == "port") return tell_free_port();
  if (words.size() == 3 && words[0] == "interface") return tell_interface(words[1], words[2]);
  if (!words.empty() && words[0] == "cause")
    return tell_job_cause({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "keep") return keep_ranks({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "ranks") return run_ranks({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "rank") return run_rank({words.begin() + 1, words.end()});
  write_all(STDERR_FILENO, "dtool-host: dtool starts this program on its hosts; call dtool\n");
  return 2;
}

}  // namespace
}  // namespace dtool::host

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);          // no child's exit code is there where this signal is ignored
  ::prctl(PR_SET_NAME, "dtool-host");  // it may have been started by another name
  // Under SSH a `bash -c` of the first level reads ~/.bashrc, and what that prints would be in the
  // log of a run and in the answers of its scripts.
  ::setenv("SHLVL", "2", 1);
  try {
    return dtool::host::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    const std::string sentence = std::string("dtool-host: ") + error.what() + "\n";
    [[maybe_unused]] const ssize_t size = ::write(STDERR_FILENO, sentence.data(), sentence.size());
    return 1;
  }
}
