// SPDX-License-Identifier: MIT
#include "ssh/program/program.h"

#include <fmt/format.h>
#include <pwd.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "killfiles/printable.h"
#include "ssh/machine/files.h"
#include "ssh/session/host_key.h"
#include "ssh/wire/words.h"

namespace dtool::ssh {
namespace {

namespace fs = std::filesystem;

/// Neither the user's files nor settings given by hand change them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kOurs = {{
    {"StrictHostKeyChecking", "yes"},
    {"UpdateHostKeys", "no"},
    {"VerifyHostKeyDNS", "no"},
    {"NoHostAuthenticationForLocalhost", "no"},
    {"ForwardAgent", "no"},
    {"ForwardX11", "no"},
    {"ForwardX11Trusted", "no"},
    {"GSSAPIDelegateCredentials", "no"},
    {"ClearAllForwardings", "yes"},
    {"Tunnel", "no"},
    {"PermitLocalCommand", "no"},
    {"RemoteCommand", "none"},
    {"RequestTTY", "no"},
    {"EscapeChar", "none"},
    {"ControlMaster", "no"},
    {"BatchMode", "no"},
    {"LogLevel", "INFO"},  // the level at which it says why no connection came about
}};

/// As soon as a connection of dtool's own notices that the host has gone.
constexpr std::string_view kDefaults = "ServerAliveInterval 15\nServerAliveCountMax 2\n";

bool is_same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// A path in quotes for a line of the configuration, where Include would take some characters for
/// patterns.
std::string quoted(const fs::path& path) {
  const std::string text = path.string();
  if (text.find_first_of("*?[]{}\"\\\n\r") != text.npos) {
    throw std::invalid_argument(fmt::format(
        "ssh cannot be given the file {}: its name holds a character that means more", text));
  }
  return fmt::format("\"{}\"", text);
}

/// ssh takes the home folder from there, whatever $HOME says.
fs::path home_in_database() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? fs::path() : fs::path(entry->pw_dir);
}

/// ssh cuts a value at blanks; a value given by hand is one word.
std::string by_hand(const std::string& keyword, const std::string& value) {
  constexpr std::array<std::string_view, 5> kSeveralWords = {"ProxyCommand", "KnownHostsCommand",
                                                             "LocalCommand", "UserKnownHostsFile",
                                                             "GlobalKnownHostsFile"};
  const bool has_several = std::ranges::any_of(
      kSeveralWords, [&](std::string_view each) { return is_same_word(each, keyword); });
  const bool is_bare = value.find_first_of(" \t") == value.npos;
  if (has_several || is_bare || value.find('"') != value.npos) return keyword + "=" + value;
  return fmt::format("{}=\"{}\"", keyword, value);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// The last line that says something, which is where ssh names the cause.
std::string last_line(std::string_view words) {
  std::string_view last = host::last_line(words);
  constexpr std::string_view kName = "ssh: ";
  if (last.starts_with(kName)) last.remove_prefix(kName.size());
  return killfiles::printable_start(last, 300);
}

}  // namespace

std::string program_config(const ConnectOptions& options) {
  std::string text;
  for (const auto& [keyword, value] : kOurs) text += fmt::format("{} {}\n", keyword, value);
  const fs::path home = home_folder();
  if (options.config_file) {
    const fs::path file = fs::absolute(from_home(options.config_file->string()));
    if (*options.config_file != "none") text += fmt::format("Include {}\n", quoted(file));
  } else {
    text +=
        fmt::format("Include {}\nInclude /etc/ssh/ssh_config\n", quoted(home / ".ssh" / "config"));
  }
  if (home != home_in_database()) {
    text += fmt::format("UserKnownHostsFile {}\n", quoted(home / ".ssh" / "known_hosts"));
    for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk"})
      text += fmt::format("IdentityFile {}\n", quoted(home / ".ssh" / name));
  }
  return text.append(kDefaults);
}

std::vector<std::string> program_arguments(const std::string& config_file,
                                           const ConnectOptions& options, const Host& host,
                                           const std::vector<std::string>& extra) {
  std::vector<std::string> words = {"ssh", "-F", config_file};
  for (const auto& [keyword, value] : options.settings) {
    const bool is_ours = std::ranges::any_of(
        kOurs, [&keyword](const auto& each) { return is_same_word(each.first, keyword); });
    if (is_ours) continue;
    words.insert(words.end(), {"-o", by_hand(keyword, value)});
  }
  if (!host.user.empty()) words.insert(words.end(), {"-l", host.user});
  if (host.port != 0) words.insert(words.end(), {"-p", std::to_string(host.port)});
  words.insert(words.end(), extra.begin(), extra.end());
  words.insert(words.end(), {"--", host.name});
  return words;
}

ProgramSettings read_program_settings(std::string_view text) {
  ProgramSettings settings;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string keyword = line.substr(0, blank);
    const std::string value = line.substr(std::min(blank + 1, line.size()));
    if (keyword == "hostname") settings.address = value;
    if (keyword == "user") settings.user = value;
    if (keyword == "port") settings.port = value;
    if (keyword == "controlpath" && value != "none") settings.control_path = value;
    if (keyword == "identityfile" || keyword == "certificatefile")
      settings.files.push_back(from_home(value));
    if (keyword == "userknownhostsfile" || keyword == "globalknownhostsfile") {
      for (const std::string_view word : words_of(value)) settings.files.push_back(from_home(word));
      const bool is_users = keyword == "userknownhostsfile" && !words_of(value).empty();
      if (is_users) settings.known_hosts = from_home(words_of(value).front());
    }
  }
  return settings;
}

bool is_dropped_greeting(std::string_view words) {
  return words.find("kex_exchange_identification:") != words.npos ||
         words.find("banner exchange:") != words.npos;
}

HostError program_failure(std::string_view words, const ProgramSettings& settings,
                          std::size_t answers) {
  const auto says = [words](std::string_view part) { return words.find(part) != words.npos; };
  const std::string name = settings.port == "22"
                               ? settings.address
                               : fmt::format("'[{}]:{}'", settings.address, settings.port);
  const std::string known_hosts = settings.known_hosts.string();
  const std::string last = last_line(words);
  if (says("REVOKED HOST KEY") || says("revoked by file")) {
    return {Failure::host_key_revoked, fmt::format("the host key is marked as revoked: {}", last),
            "the server may not be the real host; the host needs a new key"};
  }
  if (says("REMOTE HOST IDENTIFICATION HAS CHANGED")) {
    return {Failure::host_key_changed,
            fmt::format("the host key is not the one in {}", known_hosts),
            fmt::format("someone may be listening in; if you know that the host was set up anew: "
                        "ssh-keygen -R {} -f {}",
                        name, known_hosts)};
  }
  if (says("requested strict checking") || says("Host key verification failed")) {
    return {Failure::host_key_unknown, fmt::format("the host key is not in {}", known_hosts),
            hint_at_trust(settings.known_hosts)};
  }
  if (says("Permission denied (") || says("Too many authentication failures")) {
    const std::string asked = answers == 0 ? "" : fmt::format(" after {} of your answers", answers);
    return {Failure::not_authenticated,
            fmt::format("user {} was not let in by ssh{}: {}",
                        killfiles::printable_start(settings.user, 100), asked, last),
            "is this the right user, and which ways to log in does the host take?"};
  }
  if (says("timed out")) {
    return {Failure::connect_timed_out, last, "--connect_timeout sets how long dtool waits"};
  }
  return {Failure::unreachable,
          last.empty() ? "ssh ended without a word" : fmt::format("ssh says: {}", last)};
}

}  // namespace dtool::ssh
