// SPDX-License-Identifier: MIT
#include "trainer/launch/libraries.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace dtool::trainer {
namespace {

[[noreturn]] void trace(const std::filesystem::path& program, int output) {
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
  ::execl(program.c_str(), program.c_str(), nullptr);
  ::_exit(127);
}

std::string read_to_end(int pipe) {
  std::string text;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t size = ::read(pipe, piece.data(), piece.size());
    if (size > 0) text.append(piece.data(), static_cast<std::size_t>(size));
    if (size == 0 || (size < 0 && errno != EINTR)) return text;
  }
}

/// The name in `\tlibc10.so => not found` or `PROGRAM: LIBRARY: version `GLIBC_2.38' not found (…`;
/// empty: nothing is missing.
std::string_view missing_in(std::string_view line) {
  if (line.find("not found") == line.npos) return {};
  const std::size_t quote = line.find("version `");
  if (quote != line.npos) {
    line.remove_prefix(quote + std::string_view("version `").size());
    return line.substr(0, line.find('\''));
  }
  line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
  return line.substr(0, line.find(' '));
}

}  // namespace

std::vector<std::string> missing_in_trace(std::string_view trace) {
  std::vector<std::string> missing;
  while (!trace.empty()) {
    const std::size_t end = std::min(trace.find('\n'), trace.size());
    std::string name(missing_in(trace.substr(0, end)));
    if (!name.empty() && std::ranges::count(missing, name) == 0) missing.push_back(std::move(name));
    trace.remove_prefix(std::min(end + 1, trace.size()));
  }
  return missing;
}

std::vector<std::string> missing_libraries(const std::filesystem::path& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "no pipe");
  const pid_t child = ::fork();
  if (child == 0) trace(program, ends[1]);
  ::close(ends[1]);
  const std::string text = child == -1 ? "" : read_to_end(ends[0]);
  ::close(ends[0]);
  if (child == -1) throw std::system_error(errno, std::generic_category(), "no process");
  int status = 0;
  while (::waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  std::vector<std::string> missing = missing_in_trace(text);
  if (missing.empty() && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    missing.push_back(program.string());
  return missing;
}

}  // namespace dtool::trainer
