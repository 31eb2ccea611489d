// fork and exec rather than a library's process: the child is to die with this process.
#include "trainer/data/curl.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>
#include <system_error>

namespace dtool::trainer {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(200);
constexpr std::size_t kMostOutput = 1 << 18;  // headers and an error line

struct Child {
  pid_t process = -1;
  int output = -1;
};

/// Only calls that are safe after fork in a process with threads.
[[noreturn]] void become_curl(const char* program, char* const* arguments, pid_t parent,
                              int inherited, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  fcntl(inherited, F_SETFD, 0);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  signal(SIGPIPE, SIG_DFL);
  execv(program, arguments);
  _exit(127);
}

Child start(const std::filesystem::path& program, const CurlRequest& request, int inherited) {
  const auto words = curl_arguments(request);
  std::vector<char*> arguments;
  for (const auto& each : words) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become_curl(program.c_str(), arguments.data(), parent, inherited, ends[1]);
  const int error = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw std::system_error(error, std::generic_category(), "cannot start curl");
  }
  return {child, ends[0]};
}

/// Reads what has come within `kPoll`; false at the end of the output.
bool read_some(int output, std::string& text) {
  pollfd ready{output, POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(kPoll.count())) <= 0) return true;
  char buffer[4096];
  const auto size = read(output, buffer, sizeof buffer);
  if (size <= 0) return size < 0 && errno == EINTR;
  if (text.size() < kMostOutput) text.append(buffer, static_cast<std::size_t>(size));
  return true;
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::int64_t number_at(const std::string& line, std::size_t at) {
  std::int64_t value = 0;
  at = line.find_first_not_of(' ', at);
  if (at != std::string::npos) std::from_chars(line.data() + at, line.data() + line.size(), value);
  return value;
}

}  // namespace

std::optional<std::filesystem::path> find_curl(const std::optional<std::string>& path_variable) {
  std::istringstream folders(path_variable.value_or("/usr/bin:/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto program = std::filesystem::path(folder.empty() ? "." : folder) / "curl";
    if (access(program.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(program)) {
      return program;
    }
  }
  return std::nullopt;
}

std::vector<std::string> curl_arguments(const CurlRequest& request) {
  const std::string stall = fmt::format("{}", request.stall.count());
  return {"curl",
          "--silent",
          "--show-error",
          "--fail",
          "--globoff",
          "--location",
          "--max-redirs",
          "10",
          "--proto-redir",
          "=http,https",
          "--connect-timeout",
          stall,
          "--speed-limit",
          "1024",
          "--speed-time",
          stall,
          "--continue-at",
          "-",
          "--dump-header",
          "-",
          "--output",
          request.into.string(),
          "--url",
          request.url};
}

CurlOutput parse_curl_output(const std::string& text) {
  CurlOutput output;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::string name = lower(line.substr(0, line.find(':')));
    if (line.starts_with("HTTP/")) {
      output.http_status = static_cast<int>(number_at(line, line.find(' ')));
      output.length.reset();
    } else if (name == "content-length") {
      output.length = number_at(line, name.size() + 1);
    } else if (line.starts_with("curl: (")) {
      const auto end = line.find(") ");
      output.error = end == std::string::npos ? line : line.substr(end + 2);
    }
  }
  return output;
}

CurlResult run_curl(const std::filesystem::path& program, const CurlRequest& request, int inherited,
                    const CurlObserver& observer) {
  const Child child = start(program, request, inherited);
  std::string text;
  bool wanted = true;
  while (read_some(child.output, text)) {
    if (!wanted || observer(parse_curl_output(text))) continue;
    wanted = false;
    kill(child.process, SIGKILL);
  }
  close(child.output);
  const int exit_code = wait_for(child.process);
  const CurlOutput output = parse_curl_output(text);
  return {wanted ? exit_code : -1, output.http_status, output.error};
}

}  // namespace dtool::trainer
