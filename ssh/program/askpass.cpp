// SPDX-License-Identifier: MIT
#include "ssh/program/askpass.h"

#include <fmt/format.h>
#include <poll.h>
#include <string.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"

namespace dtool::ssh {
namespace {

using namespace askpass_protocol;

constexpr const char* kVariable = "DTOOL_ASKPASS";

}  // namespace

void wipe(std::string& secret) {
  ::explicit_bzero(secret.data(), secret.size());
  secret.clear();
}

bool is_askpass(int argc) {
  return argc == 2 && std::getenv(kVariable) != nullptr;
}

int askpass(const std::string& prompt) {
  try {
    const std::optional<KeptFolder> folder = KeptFolder::open(KeptFolder::Make::no);
    const std::string name = std::getenv(kVariable);
    if (!folder || name.find('/') != name.npos) return 1;
    const KeptFolder::Connecting connecting = folder->connect(name);
    if (connecting.reached != Reached::yes) return 1;
    const char* hint = std::getenv("SSH_ASKPASS_PROMPT");
    const std::string_view wanted = hint == nullptr ? "" : hint;
    char kind = kSecret;
    if (wanted == "confirm") kind = kConfirmation;
    if (wanted == "none") kind = kNotice;
    const int fd = connecting.socket.get();
    if (!send_message(fd, kind + prompt.substr(0, kLongestPrompt))) return 1;
    pollfd readable{fd, POLLIN, 0};
    while (::poll(&readable, 1, -1) < 0 && errno == EINTR) {
    }
    Message answer;
    if (receive_message(fd, answer) != Received::message) return 1;
    if (answer.bytes.front() != kGiven) return 1;
    std::string text = answer.bytes.substr(1) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    wipe(text);
    wipe(answer.bytes);
    return 0;
  } catch (const std::exception&) {
    return 1;  // ssh goes on without an answer
  }
}

std::vector<std::string> askpass_environment(const std::string& name) {
  std::vector<std::string> variables = {
      "SSH_ASKPASS=" + std::filesystem::read_symlink("/proc/self/exe").string(),
      "SSH_ASKPASS_REQUIRE=force", fmt::format("{}={}", kVariable, name),
      "DTOOL_RUN_ID=",  // an ssh that stays is no process of the run that dtool may be started in
  };
  // OpenSSH before 8.4 uses SSH_ASKPASS only if it could open a window.
  if (std::getenv("DISPLAY") == nullptr) variables.emplace_back("DISPLAY=:");
  return variables;
}

}  // namespace dtool::ssh
