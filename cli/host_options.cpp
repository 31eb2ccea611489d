// SPDX-License-Identifier: MIT
#include "cli/host_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

#include "cli/action.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "killfiles/nearest.h"
#include "killfiles/whole_file.h"
#include "ssh/host.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/notice.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

constexpr const char* kGroup = "Hosts";  ///< the flags' heading in --help

/// Stands among a killfile's SSH settings where the program was chosen.
constexpr const char* kProgramKeyword = "DtoolProgram";

/// Flags of ssh that stand for a setting of its configuration.
const std::map<char, std::string> kSettingOfFlag = {
    {'i', "IdentityFile"}, {'p', "Port"}, {'l', "User"}, {'J', "ProxyJump"}};

std::pair<std::string, std::string> split_setting(const std::string& text) {
  const std::size_t at = std::min(text.find_first_of("= \t"), text.size());
  std::size_t value = std::min(text.find_first_not_of(" \t", at), text.size());
  if (value < text.size() && text[value] == '=') ++value;
  value = std::min(text.find_first_not_of(" \t", value), text.size());
  if (at == 0 || value == text.size()) {
    throw std::invalid_argument(fmt::format("--ssh_cmd: -o wants Keyword=value, not {}", text));
  }
  return {text.substr(0, at), text.substr(value)};
}

/// Whether it is a setting of a file, which ssh looks for from the folder it is called in.
bool names_file(const std::string& keyword) {
  constexpr std::array kKeywords = {"IdentityFile", "CertificateFile", "UserKnownHostsFile",
                                    "GlobalKnownHostsFile"};
  return std::ranges::any_of(
      kKeywords, [&keyword](const char* each) { return ::strcasecmp(each, keyword.c_str()) == 0; });
}

/// A path that holds in every folder. What `~`, `%d` or `${NAME}` stand for is settled at its use,
/// and `none` is no file.
std::string anchored(const std::string& path) {
  const bool is_anchored = path.find_first_of("/~%$") == 0 || path == "none" || path == "NONE";
  return is_anchored ? path : std::filesystem::absolute(path).string();
}

/// The same for a setting of files: those of known hosts may be several, with blanks between them.
std::string with_anchored_files(const std::string& keyword, const std::string& value) {
  constexpr const char* kSeveral[] = {"UserKnownHostsFile", "GlobalKnownHostsFile"};
  const bool may_be_several = std::ranges::any_of(
      kSeveral, [&keyword](const char* each) { return ::strcasecmp(each, keyword.c_str()) == 0; });
  if (!may_be_several || value.find_first_of("\"'\\") != value.npos) return anchored(value);
  std::string all;
  for (const std::string& each : ssh::split_shell_words(value))
    all += (all.empty() ? "" : " ") + anchored(each);
  return all;
}

ssh::Program program_of(const std::string& name) {
  if (name == "ssh") return ssh::Program::ssh;
  return name == "libssh" ? ssh::Program::libssh : ssh::Program::automatic;
}

ssh::ConnectOptions connect_options(const HostOptions& options, const Settings& settings) {
  constexpr auto kKeep = std::chrono::minutes(5);
  ssh::ConnectOptions connect;
  connect.keep = settings.keep_connections.value_or(kKeep);
  if (settings.connect_timeout) connect.connect_timeout = *settings.connect_timeout;
  if (settings.width) connect.width = *settings.width;
  if (settings.ssh_config_file) connect.config_file = ssh::from_home(*settings.ssh_config_file);
  if (options.connect_timeout > 0)
    connect.forced_connect_timeout = from_seconds(options.connect_timeout);
  if (options.width > 0) connect.width = options.width;
  const std::string& program =
      options.ssh_program.empty() ? settings.ssh_program.value_or("auto") : options.ssh_program;
  connect.program = program_of(program);
  const std::string& ask = options.ask.empty() ? settings.ssh_ask.value_or("each") : options.ask;
  connect.trace = options.trace;
  connect.ask = ask == "once" ? ssh::Ask::once : ssh::Ask::each;
  if (!options.ssh_cmd.empty()) {
    const SshCommand command = parse_ssh_cmd(options.ssh_cmd);
    if (command.config_file) connect.config_file = ssh::from_home(*command.config_file);
    connect.settings.insert(connect.settings.end(), command.settings.begin(),
                            command.settings.end());
  }
  return connect;
}

bool is_host(const std::string& text) {
  try {
    ssh::parse_host(text);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// Whether anybody's killfile may set it: who logs in, and at which port. Every other keyword, also
/// a future one, may decide whose host key counts, which key is shown, or what is read or run here.
bool is_harmless(const std::string& keyword, const std::string& value) {
  if (::strcasecmp(keyword.c_str(), "User") == 0) return is_host(value + "@host");
  return ::strcasecmp(keyword.c_str(), "Port") == 0 && is_host("host:" + value);
}

/// The mark that this machine's user chose the killfile's SSH settings: its name has their digest.
std::filesystem::path mark_of_choice(const killfiles::Killfile& killfile) {
  ssh::Sha256 sum;
  const auto add = [&sum](const std::string& text) {
    sum.add(text);
    sum.add(std::string_view("", 1));
  };
  add(killfile.ssh_config_file);
  for (const auto& [keyword, value] : killfile.ssh_settings) {
    add(keyword);
    add(value);
  }
  return ssh::home_folder() / ".dtool" / "accepted_settings" / ("ssh_" + sum.hex());
}

void take_settings(const killfiles::Killfile& killfile, const HostOptions& options,
                   ssh::ConnectOptions& connect) {
  if (!killfile.ssh_config_file.empty() && options.ssh_cmd.empty())
    connect.config_file = killfile.ssh_config_file;
  for (const auto& [keyword, value] : killfile.ssh_settings) {
    if (keyword != kProgramKeyword) connect.settings.emplace_back(keyword, value);
    if (keyword == kProgramKeyword && options.ssh_program.empty())
      connect.program = program_of(value);
  }
}

/// Tells, once in a command, what was not taken from a killfile, and how the user can choose it.
void tell_left_out(const killfiles::Killfile& killfile, const std::string& flags) {
  static std::set<std::string> told;
  if (!told.insert(killfile.run_id + flags).second) return;
  ssh::notice(
      fmt::format("the killfile of {} has SSH settings that were not chosen on this machine, and "
                  "that decide about trust or what runs here: they are left out\n"
                  "hint: if you want them:{}",
                  killfile.run_id.empty() ? "a run" : killfile.run_id, flags));
}

/// Takes the settings of a killfile that somebody else may have written as far as they are
/// harmless. Those that the user's own flags and files say as well are no news.
void take_harmless_settings(const killfiles::Killfile& killfile, const HostOptions& options,
                            ssh::ConnectOptions& connect) {
  ssh::ConnectOptions all = connect;
  take_settings(killfile, options, all);
  std::string words;
  const auto text_of = [](const auto& file) { return file ? anchored(file->string()) : ""; };
  if (text_of(all.config_file) != text_of(connect.config_file))
    words += " -F " + ssh::quote(killfile.ssh_config_file);
  const auto own = connect.settings;
  for (const auto& setting : std::span(all.settings).subspan(own.size())) {
    if (is_harmless(setting.first, setting.second)) {
      connect.settings.push_back(setting);
    } else if (std::ranges::find(own, setting) == own.end()) {
      words += " -o " + ssh::quote(setting.first + "=" + setting.second);
    }
  }
  std::string flags;
  if (all.program == ssh::Program::ssh && connect.program != all.program)
    flags += " --ssh_program ssh";
  if (!words.empty()) flags += " --ssh_cmd " + ssh::quote("ssh" + words);
  if (!flags.empty()) tell_left_out(killfile, flags);
}

}  // namespace

void add_connect_options(Options& command, HostOptions& options) {
  command
      .add_option("--connect_timeout SECONDS", options.connect_timeout,
                  "seconds to wait for a connection (10)")
      .check(must_be_seconds)
      .group(kGroup);
  command.add_whole_number("--width", options.width, "most hosts served at once (256)", {1})
      .group(kGroup);
  command
      .add_option("--ssh_cmd", options.ssh_cmd,
                  "an ssh command line: -i -p -l -F -J -o and user@{addr}")
      .group(kGroup);
  command
      .add_option("--ssh_program auto|libssh|ssh", options.ssh_program,
                  "connect by libssh, by your own ssh, or by ssh only where needed (auto)")
      .one_of({"auto", "libssh", "ssh"})
      .group(kGroup);
  command
      .add_option(
          "--ask WHEN", options.ask,
          "ask for passwords and codes for each host, or once for hosts that ask the same (each)")
      .one_of({"each", "once"})
      .group(kGroup);
  command
      .add_option(
          "--trace DIR", options.trace,
          "write the messages to and from each host into DIR, with times and without secrets")
      .group(kGroup);
}

/// As after mpirun's -x.
static std::string must_be_no_variable(const std::string& text) {
  return text.find('=') == text.npos
             ? ""
             : fmt::format("'{}' is a variable, which --export gives to the processes", text);
}

void add_host_options(Options& command, HostOptions& options) {
  command
      .add_option("-w,-H,--runs_on,--hosts HOSTS", options.runs_on,
                  "a,b  [user@]host[:port]  gpu[01-08]  @group  local")
      .group(kGroup);
  command
      .add_option("--hostfile FILE", options.hostfile,
                  "a file of hosts, as of Open MPI; - is stdin")
      .group(kGroup);
  command
      .add_option("-x,--exclude_hosts HOSTS", options.exclude_hosts, "hosts to leave out of those")
      .check(must_be_no_variable)
      .group(kGroup);
  add_pick_option(command, options.pick);
  add_connect_options(command, options);
}

void add_pick_option(Options& command, std::size_t& count) {
  command.add_whole_number("--pick N", count, "take N of the hosts, by chance (all)", {1})
      .group(kGroup);
}

void pick_hosts(std::size_t count, Targets& targets) {
  const std::size_t all = targets.hosts.size();
  if (count > all)
    throw std::invalid_argument(fmt::format("--pick {}: there {} {} to pick from", count,
                                            all == 1 ? "is" : "are", counted(all, "host")));
  std::vector<std::size_t> places(all);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<std::size_t> picked;
  std::ranges::sample(places, std::back_inserter(picked), static_cast<std::ptrdiff_t>(count),
                      std::random_device());
  Targets some{{}, {}, targets.connect};
  for (const std::size_t place : picked) {
    some.hosts.push_back(targets.hosts[place]);
    some.slots.push_back(targets.slots[place]);
  }
  targets = std::move(some);
}

ssh::GroupLookup group_lookup(const Settings& settings) {
  return [&settings](std::string_view name) {
    const auto found = settings.groups.find(std::string(name));
    if (found != settings.groups.end())
      return found->second.from.empty() ? found->second.hosts : hosts_from(found->second);
    std::vector<std::string> known;
    for (const auto& [group, hosts] : settings.groups) known.push_back(group);
    if (name == "*" && !known.empty()) return fmt::format("@{}", fmt::join(known, ",@"));
    throw std::invalid_argument(
        fmt::format("there is no group {}in the configuration\nhint: {}",
                    name == "*" ? "" : fmt::format("@{} ", name),
                    known.empty() ? "groups are defined under [groups] in ~/.dtool/config.toml"
                                  : fmt::format("known groups: {}", fmt::join(known, ", "))));
  };
}

namespace {

/// A name without a user and a port stands for the host with any.
void leave_out(const ssh::Host& host, Targets& targets) {
  const bool is_name = host.user.empty() && host.port == 0;
  std::vector<ssh::Host> hosts;
  std::vector<std::optional<int>> slots;
  for (std::size_t i = 0; i < targets.hosts.size(); ++i) {
    if (is_name ? targets.hosts[i].name == host.name : targets.hosts[i] == host) continue;
    hosts.push_back(targets.hosts[i]);
    slots.push_back(targets.slots[i]);
  }
  if (hosts.size() == targets.hosts.size()) {
    std::vector<std::string> names;
    for (const ssh::Host& each : hosts) names.push_back(ssh::to_string(each));
    const auto meant = killfiles::nearest(ssh::to_string(host), names);
    throw std::invalid_argument(fmt::format("--exclude_hosts: {} is not among the hosts\nhint: {}",
                                            ssh::to_string(host),
                                            meant ? fmt::format("did you mean {}?", *meant)
                                            : names.empty() ? "all of them are left out already"
                                                            : "they are " + fold_hosts(hosts)));
  }
  targets.hosts = std::move(hosts);
  targets.slots = std::move(slots);
}

std::optional<Targets> named_targets(const HostOptions& options, const Settings& settings) {
  Targets targets;
  targets.connect = connect_options(options, settings);
  if (!options.runs_on.empty() && !options.hostfile.empty()) {
    throw std::invalid_argument("--runs_on and --hostfile both name hosts\nhint: give one of them");
  }
  std::error_code unseen;
  const bool may_be_file = options.runs_on.find_first_of("./") != std::string::npos;
  if (may_be_file && std::filesystem::is_regular_file(options.runs_on, unseen))
    throw UsageError(fmt::format("--runs_on {}: that is a file", options.runs_on),
                     fmt::format("--hostfile {} reads hosts from it", options.runs_on));
  if (!options.hostfile.empty()) {
    if (options.hostfile != "-" && !std::filesystem::exists(options.hostfile, unseen))
      throw UsageError(
          fmt::format("hostfile {}: cannot be read: No such file or directory", options.hostfile),
          killfiles::nearest_file(options.hostfile));
    for (const ssh::HostfileEntry& entry : ssh::read_hostfile(options.hostfile)) {
      targets.hosts.push_back(entry.host);
      targets.slots.push_back(entry.slots);
    }
    return targets;
  }
  if (options.runs_on.empty() && !settings.runs_on) return std::nullopt;
  const std::string& patterns = options.runs_on.empty() ? *settings.runs_on : options.runs_on;
  targets.hosts = ssh::parse_hosts(patterns, group_lookup(settings));
  targets.slots.resize(targets.hosts.size());
  return targets;
}

}  // namespace

std::optional<Targets> choose_targets(const HostOptions& options, const Settings& settings) {
  std::optional<Targets> targets = named_targets(options, settings);
  if (!targets && !options.exclude_hosts.empty())
    throw std::invalid_argument(
        "--exclude_hosts leaves hosts out of those that are named, and none were\n"
        "hint: --runs_on names them");
  if (!targets && options.pick > 0)
    throw std::invalid_argument(
        "--pick takes some of the hosts that are named, and none were\n"
        "hint: --runs_on names them");
  if (!options.exclude_hosts.empty()) {
    for (const ssh::Host& host : ssh::parse_hosts(options.exclude_hosts, group_lookup(settings)))
      leave_out(host, *targets);
    if (targets->hosts.empty()) throw std::invalid_argument("--exclude_hosts leaves out all hosts");
  }
  if (options.pick > 0) pick_hosts(options.pick, *targets);
  return targets;
}

Targets recorded_targets(const killfiles::Killfile& killfile, const HostOptions& options,
                         const UserSettings& users) {
  Targets targets;
  targets.connect = connect_options(options, users.settings);
  if (std::filesystem::exists(mark_of_choice(killfile))) {
    take_settings(killfile, options, targets.connect);
  } else {
    take_harmless_settings(killfile, options, targets.connect);
  }
  for (const killfiles::Machine& machine : killfile.machines) {
    try {
      targets.hosts.push_back(ssh::parse_host(machine.host));
    } catch (const std::invalid_argument& fault) {
      const std::string_view sentence = fault.what();
      throw std::invalid_argument(
          fmt::format("the killfile of {}, machine {}: {}\nhint: mend the file", killfile.run_id,
                      machine.id, sentence.substr(0, sentence.find("\nhint: "))));
    }
  }
  targets.slots.resize(targets.hosts.size());
  return targets;
}

void write_connection(const ssh::ConnectOptions& connect, killfiles::Killfile& killfile) {
  if (connect.program != ssh::Program::automatic) {
    killfile.ssh_settings.emplace_back(kProgramKeyword,
                                       connect.program == ssh::Program::ssh ? "ssh" : "libssh");
  }
  if (connect.config_file) killfile.ssh_config_file = anchored(*connect.config_file);
  for (const auto& [keyword, value] : connect.settings) {
    if (::strcasecmp(keyword.c_str(), "ConnectTimeout") == 0) continue;
    killfile.ssh_settings.emplace_back(
        keyword, names_file(keyword) ? with_anchored_files(keyword, value) : value);
  }
  if (killfile.ssh_config_file.empty() && killfile.ssh_settings.empty()) return;
  const std::filesystem::path mark = mark_of_choice(killfile);
  if (!std::filesystem::exists(mark)) killfiles::write_whole(mark, "");
}

SshCommand parse_ssh_cmd(const std::string& text) {
  SshCommand command;
  std::vector<std::string> words = ssh::split_shell_words(text);
  if (!words.empty() && words.front() == "ssh") words.erase(words.begin());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "{addr}") continue;
    constexpr std::string_view kAddress = "@{addr}";
    if (word.ends_with(kAddress) && word.size() > kAddress.size()) {
      command.settings.emplace_back("User", word.substr(0, word.size() - kAddress.size()));
      continue;
    }
    const char flag = word.size() >= 2 && word[0] == '-' ? word[1] : '\0';
    const bool is_known = flag == 'F' || flag == 'o' || kSettingOfFlag.contains(flag);
    if (!is_known) {
      throw std::invalid_argument(fmt::format(
          "--ssh_cmd: {} is not understood\nhint: -i, -p, -l, -F, -J, -o and user@{{addr}} are",
          word));
    }
    if (word.size() == 2 && i + 1 == words.size()) {
      throw std::invalid_argument(fmt::format("--ssh_cmd: {} wants a value", word));
    }
    const std::string value = word.size() > 2 ? word.substr(2) : words[++i];
    if (flag == 'F') {
      command.config_file = value;
    } else if (flag == 'o') {
      command.settings.push_back(split_setting(value));
    } else {
      command.settings.emplace_back(kSettingOfFlag.at(flag), value);
    }
  }
  return command;
}

}  // namespace dtool::cli
