// SPDX-License-Identifier: MIT
#include "ssh/machine/run_to_end.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <utility>

#include "ssh/machine/files.h"
#include "ssh/machine/process.h"

namespace dtool::ssh {

std::optional<Written> run_to_end(std::vector<std::string> arguments,
                                  std::vector<std::string> environment,
                                  std::vector<std::string> left_out) {
  if (find_executable(arguments.front()).empty()) return std::nullopt;
  Process::Program program;
  program.arguments = std::move(arguments);
  program.environment = std::move(environment);
  program.left_out = std::move(left_out);
  // In memory, however much that is: no pipe to be emptied meanwhile.
  const std::array<OwnedFd, 2> files{memory_file(""), memory_file("")};
  const auto text = [&](int i) {
    return read_file(fmt::format("/proc/self/fd/{}", files[i].get()));
  };
  Reactor reactor;
  Process process(reactor, program, {-1, files[0].get(), files[1].get()});
  Written written;
  asio::co_spawn(reactor.context(), process.wait(kNoDeadline),
                 [&](std::exception_ptr, int exit_code) { written.exit_code = exit_code; });
  reactor.context().run();
  written.out = text(0);
  written.err = text(1);
  return written;
}

}  // namespace dtool::ssh
