// SPDX-License-Identifier: MIT
// A program that runs beside a test, with a pipe to and from it: what dtool has hosts run.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace dtool::fuzz {

class Program {
 public:
  /// Runs in `folder`, where `errors` takes its standard error.
  Program(std::vector<std::string> arguments, const std::filesystem::path& folder) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    std::vector<char*> words;
    for (std::string& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    const std::string errors = folder / "errors";
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), 2);
      if (chdir(folder.c_str()) == 0) execvp(words[0], words.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    fcntl(from_, F_SETFL, O_NONBLOCK);
  }
  ~Program() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    end();
    close(from_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  static bool is_installed(const std::string& name) {
    return std::system(("command -v " + name + " > /dev/null").c_str()) == 0;
  }

  void say(std::string_view bytes) const {
    [[maybe_unused]] const auto written = write(to_, bytes.data(), bytes.size());
  }

  /// Whole lines that have come, without their ends; waits for the first one for so long.
  std::vector<std::string> hear(std::chrono::milliseconds patience = std::chrono::milliseconds(0)) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      char bytes[65'536];
      const ssize_t size = read(from_, bytes, sizeof bytes);
      if (size > 0) {
        unread_.append(bytes, static_cast<std::size_t>(size));
        continue;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (size == 0 || left.count() <= 0 || unread_.find('\n') != std::string::npos) break;
      pollfd waited{from_, POLLIN, 0};
      poll(&waited, 1, static_cast<int>(left.count()));
    }
    std::vector<std::string> lines;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = unread_.find('\n', begin)) != std::string::npos;) {
      lines.push_back(unread_.substr(begin, end - begin));
      begin = end + 1;
    }
    unread_.erase(0, begin);
    return lines;
  }

  bool runs() const {
    siginfo_t ended{};
    return pid_ > 0 &&
           waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0;
  }

  /// Closes its input. Its exit code, 128 and more for a signal; nothing where it does not end
  /// within ten minutes.
  std::optional<int> end() {
    if (to_ >= 0) close(std::exchange(to_, -1));
    if (pid_ <= 0) return std::nullopt;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string unread_;
};

}  // namespace dtool::fuzz
