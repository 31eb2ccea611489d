// SPDX-License-Identifier: MIT
// Resolves how one host is reached, from the blocks that config_block.cpp read.
#include "ssh/config/client_config.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "ssh/config/config_block.h"
#include "ssh/machine/files.h"
#include "ssh/wire/words.h"

namespace dtool::ssh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSystemFolder = "/etc/ssh";
constexpr int kDeepestJump = 8;  // jump hosts that name each other would never end

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string local_user() {
  const passwd* entry = getpwuid(getuid());
  return entry == nullptr ? variable("USER") : entry->pw_name;
}

// The settings that hold for one host, first value first.
class Answers {
 public:
  explicit Answers(const Host& host) : host_(host) {}

  bool holds(const ConfigBlock& block) const {
    return std::ranges::none_of(block.conditions, is_never) && holds_as_far_as_known(block);
  }

  /// Whether the only criteria that do not hold are those that ssh alone can decide.
  bool is_left_to_ssh(const ConfigBlock& block) const {
    return !block.undecided.empty() && holds_as_far_as_known(block);
  }

  void add(const ConfigSetting& setting) {
    // ProxyJump and ProxyCommand exclude each other: the first one that is named wins.
    if (setting.keyword == "proxyjump" && values_.contains("proxycommand")) return;
    if (setting.keyword == "proxycommand" && values_.contains("proxyjump")) return;
    // ssh takes this for nothing said, so that a later value counts.
    if (setting.keyword == "connecttimeout" && setting.values.front() == "none") return;
    if (setting.keyword == "identityfile") {
      identity_files_.push_back(setting.values.front());
    } else if (setting.keyword == "certificatefile") {
      certificate_files_.push_back(setting.values.front());
    } else {
      values_.try_emplace(setting.keyword, setting.values);
    }
  }

  std::optional<std::string> get(const std::string& keyword) const {
    const auto found = values_.find(keyword);
    return found == values_.end() ? std::nullopt : std::optional(found->second.front());
  }

  /// All values of a setting that takes several.
  std::vector<std::string> get_all(const std::string& keyword,
                                   const std::vector<std::string>& otherwise) const {
    const auto found = values_.find(keyword);
    return found == values_.end() ? otherwise : found->second;
  }

  const std::vector<std::string>& identity_files() const { return identity_files_; }
  const std::vector<std::string>& certificate_files() const { return certificate_files_; }

  std::string address() const {
    return expand_tokens(get("hostname").value_or(host_.name), {{'h', host_.name}, {'%', "%"}});
  }

  std::string user() const {
    return host_.user.empty() ? get("user").value_or(local_user()) : host_.user;
  }

 private:
  static bool is_never(const ConfigCondition& condition) { return condition.kind == "never"; }

  bool holds_as_far_as_known(const ConfigBlock& block) const {
    return std::ranges::all_of(block.conditions, [this](const ConfigCondition& condition) {
      return is_never(condition) ||
             matches_any(subject(condition.kind), condition.patterns) != condition.negated;
    });
  }

  std::string subject(std::string_view kind) const {
    if (kind == "host") return address();
    if (kind == "originalhost") return host_.name;
    return kind == "user" ? user() : local_user();
  }

  const Host& host_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> identity_files_;
  std::vector<std::string> certificate_files_;
};

bool is_for_destination_only(std::string_view keyword) {
  static constexpr std::array<std::string_view, 6> kKeywords = {
      "hostname", "hostkeyalias", "user", "port", "proxyjump", "proxycommand"};
  return std::ranges::find(kKeywords, keyword) != kKeywords.end();
}

// Nothing if it is not a host: the connection will report the fault.
std::optional<Host> read_jump(std::string_view jump) {
  try {
    return parse_host(jump);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

std::optional<Host> first_jump(const Endpoint& endpoint) {
  return endpoint.jumps.empty() ? std::nullopt : read_jump(endpoint.jumps.front());
}

bool is_same_place(std::string_view jump, const Host& host, const Endpoint& endpoint) {
  const std::optional<Host> place = read_jump(jump);
  return place && (place->name == host.name || place->name == endpoint.address) &&
         (place->port == 0 || place->port == endpoint.port);
}

// `ann@gate1,gate2:2222`, also `ssh://gate1`, cut before the host itself.
std::vector<std::string> read_jumps(const std::string& list, const Host& host,
                                    const Endpoint& endpoint) {
  std::vector<std::string> jumps;
  for (std::string_view jump : host::split(list, ',')) {
    while (jump.starts_with(' ')) jump.remove_prefix(1);
    while (jump.ends_with(' ')) jump.remove_suffix(1);
    if (jump.starts_with("ssh://")) jump.remove_prefix(6);
    if (jump.ends_with('/')) jump.remove_suffix(1);
    if (is_same_place(jump, host, endpoint)) break;
    jumps.emplace_back(jump);
  }
  return jumps;
}

bool is_none(std::string_view value) {
  return value == "none" || value == "NONE";
}

bool is_yes(const std::optional<std::string>& value) {
  return value && (value->front() == 'y' || value->front() == 'Y' || value->front() == 't' ||
                   value->front() == 'T');
}

// `none`, `SSH_AUTH_SOCK`, `$NAME` or a path.
std::string read_agent(const std::string& value, const ConfigTokens& tokens) {
  if (is_none(value)) return "";
  if (value == "SSH_AUTH_SOCK") return variable("SSH_AUTH_SOCK");
  if (value.starts_with('$') && !value.starts_with("${")) return variable(value.c_str() + 1);
  return expand_path(value, tokens);
}

fs::path read_known_hosts(const std::string& value, const ConfigTokens& tokens) {
  return is_none(value) ? "/dev/null" : expand_path(value, tokens);
}

void read_known_hosts_files(const Answers& answers, const ConfigTokens& tokens,
                            Endpoint& endpoint) {
  const std::vector<std::string> usual = {"~/.ssh/known_hosts", "~/.ssh/known_hosts2"};
  const std::vector<std::string> usual_global = {"/etc/ssh/ssh_known_hosts",
                                                 "/etc/ssh/ssh_known_hosts2"};
  for (const std::string& file : answers.get_all("userknownhostsfile", usual))
    endpoint.known_hosts_files.push_back(read_known_hosts(file, tokens));
  endpoint.known_hosts = endpoint.known_hosts_files.front();
  for (const std::string& file : answers.get_all("globalknownhostsfile", usual_global))
    endpoint.known_hosts_files.push_back(read_known_hosts(file, tokens));
}

ConfigTokens tokens_of(const Host& host, const Endpoint& endpoint) {
  return {{'%', "%"},
          {'h', endpoint.address},
          {'n', host.name},
          {'p', std::to_string(endpoint.port)},
          {'r', endpoint.user},
          {'u', local_user()},
          {'i', std::to_string(getuid())},
          {'d', home_folder().string()}};
}

// Whose keys are known, and with which keys one logs in.
void read_files(const Answers& answers, const ConfigTokens& tokens, Endpoint& endpoint) {
  for (const std::string& file : answers.identity_files()) {
    if (!is_none(file)) endpoint.identity_files.push_back(expand_path(file, tokens));
  }
  for (const std::string& file : answers.certificate_files()) {
    if (!is_none(file)) endpoint.certificate_files.push_back(expand_path(file, tokens));
  }
  endpoint.only_named_identities = is_yes(answers.get("identitiesonly"));
  read_known_hosts_files(answers, tokens, endpoint);
  endpoint.identity_agent =
      read_agent(answers.get("identityagent").value_or("SSH_AUTH_SOCK"), tokens);
}

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

/// A key that signs in hardware, which libssh asks only an agent for.
bool is_hardware_key(const fs::path& file) {
  std::ifstream key(file.string() + ".pub");
  std::string type;
  return key >> type && type.starts_with("sk-");
}

bool has_kerberos_ticket() {
  if (!variable("KRB5CCNAME").empty()) return true;
  return is_there(fmt::format("/tmp/krb5cc_{}", getuid()));
}

AddressFamily read_family(const Answers& answers) {
  const std::string family = answers.get("addressfamily").value_or("any");
  if (family == "inet") return AddressFamily::inet;
  return family == "inet6" ? AddressFamily::inet6 : AddressFamily::any;
}

std::vector<std::pair<std::string, std::string>> read_encryption(const Answers& answers) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const char* keyword : {"ciphers", "macs", "kexalgorithms", "pubkeyacceptedalgorithms",
                              "pubkeyacceptedkeytypes", "requiredrsasize"})
    if (const auto value = answers.get(keyword)) settings.emplace_back(keyword, *value);
  return settings;
}

/// dtool itself logs in with keys only.
std::string find_other_way_to_log_in(const Answers& answers) {
  const auto keys = answers.get("pubkeyauthentication");
  if (keys && !is_yes(keys)) return "PubkeyAuthentication " + *keys;
  const auto preferred = answers.get("preferredauthentications");
  return preferred && !preferred->starts_with("publickey") ? "PreferredAuthentications" : "";
}

/// A setting of the configuration that libssh does not support; or nothing.
std::string find_need_of_program(const Answers& answers, const Endpoint& endpoint) {
  if (endpoint.proxy_command) return "ProxyCommand " + *endpoint.proxy_command;
  for (const auto& [keyword, name] :
       {std::pair("knownhostscommand", "KnownHostsCommand"),
        std::pair("revokedhostkeys", "RevokedHostKeys"),
        std::pair("hostkeyalgorithms", "HostKeyAlgorithms"),
        std::pair("pkcs11provider", "PKCS11Provider"), std::pair("bindaddress", "BindAddress"),
        std::pair("bindinterface", "BindInterface"), std::pair("setenv", "SetEnv")}) {
    const auto value = answers.get(keyword);
    if (value && !is_none(*value)) return name;
  }
  if (const std::string way = find_other_way_to_log_in(answers); !way.empty()) return way;
  const std::string canonical = answers.get("canonicalizehostname").value_or("no");
  if (canonical == "always" || is_yes(canonical)) return "CanonicalizeHostname";
  const bool has_agent = !endpoint.identity_agent.empty() && is_there(endpoint.identity_agent);
  if (has_agent) return "";
  std::vector<fs::path> files = endpoint.identity_files;
  if (files.empty()) files = usual_identities();
  if (std::ranges::any_of(files, is_there)) {
    const auto first = std::ranges::find_if(files, is_there);
    return is_hardware_key(*first) ? "the hardware key " + first->string() : "";
  }
  // Without a key only these ways are left; distributions switch them on for everybody, so that
  // alone says nothing.
  for (const auto& [keyword, name] :
       {std::pair("passwordauthentication", "PasswordAuthentication"),
        std::pair("kbdinteractiveauthentication", "KbdInteractiveAuthentication"),
        std::pair("challengeresponseauthentication", "ChallengeResponseAuthentication"),
        std::pair("hostbasedauthentication", "HostbasedAuthentication")}) {
    if (is_yes(answers.get(keyword))) return fmt::format("{} and names no key that is there", name);
  }
  if (is_yes(answers.get("gssapiauthentication")) && has_kerberos_ticket())
    return "GSSAPIAuthentication and names no key that is there";
  return "";
}

ConfigSetting read_override(const std::string& keyword, const std::string& value) {
  try {
    return read_config_setting(keyword, value, ValueForm::word);
  } catch (const std::invalid_argument& fault) {
    throw std::invalid_argument(fmt::format("SSH setting {}={}: {}", keyword, value, fault.what()));
  }
}

}  // namespace

ClientConfig ClientConfig::read(const std::optional<fs::path>& user_file, Overrides overrides) {
  ClientConfig config;
  ConfigBlock by_hand;
  by_hand.by_hand = true;
  for (const auto& [keyword, value] : overrides) {
    by_hand.settings.push_back(read_override(keyword, value));
    note_unless_known(by_hand.settings.back().keyword, "-o " + keyword, {});
  }
  config.blocks_.push_back(std::move(by_hand));

  const fs::path home = home_folder();
  const auto add_file = [&](const fs::path& file, const fs::path& folder) {
    std::vector<ConfigBlock> blocks = read_config_blocks(file, folder, home);
    for (ConfigBlock& block : blocks) {
      if (block.parent) *block.parent += config.blocks_.size();
    }
    std::ranges::move(blocks, std::back_inserter(config.blocks_));
  };
  try {
    if (user_file) {
      if (*user_file != "none") add_file(expand_path(user_file->string(), {}), home / ".ssh");
      return config;
    }
    std::error_code ignored;
    const fs::path default_file = home / ".ssh" / "config";
    const fs::path system_file = fs::path(kSystemFolder) / "ssh_config";
    if (fs::exists(default_file, ignored)) add_file(default_file, home / ".ssh");
    if (fs::exists(system_file, ignored)) add_file(system_file, kSystemFolder);
  } catch (const std::system_error& fault) {
    throw std::invalid_argument(fmt::format("SSH configuration {}", fault.what()));
  }
  return config;
}

Endpoint ClientConfig::resolve(const Host& host) const {
  return resolve_as(host, Role::destination, 0);
}

Endpoint ClientConfig::resolve_jump(const Host& host) const {
  return resolve_as(host, Role::jump, 0);
}

Endpoint ClientConfig::resolve_as(const Host& host, Role role, int depth) const {
  Answers answers(host);
  std::vector<bool> held;
  std::string undecided;
  for (const ConfigBlock& block : blocks_) {
    held.push_back((!block.parent || held[*block.parent]) && answers.holds(block));
    const bool parent_holds = !block.parent || held[*block.parent];
    if (undecided.empty() && parent_holds && answers.is_left_to_ssh(block))
      undecided = block.undecided;
    if (!held.back()) continue;
    for (const ConfigSetting& setting : block.settings) {
      const bool skipped =
          role == Role::jump && block.by_hand && is_for_destination_only(setting.keyword);
      if (!skipped) answers.add(setting);
    }
  }

  Endpoint endpoint;
  endpoint.named = host.name;
  endpoint.address = answers.address();
  endpoint.key_name = answers.get("hostkeyalias").value_or(endpoint.address);
  endpoint.user = answers.user();
  const std::string port = answers.get("port").value_or("22");
  endpoint.port = host.port != 0 ? host.port : host::parse_port(port).value();
  endpoint.key_port = answers.get("hostkeyalias") ? 22 : endpoint.port;
  endpoint.address_family = read_family(answers);
  endpoint.encryption = read_encryption(answers);
  const ConfigTokens tokens = tokens_of(host, endpoint);
  read_files(answers, tokens, endpoint);
  if (const auto jumps = answers.get("proxyjump"); jumps && !is_none(*jumps)) {
    endpoint.jumps = read_jumps(expand_tokens(*jumps, tokens), host, endpoint);
    if (const auto first = first_jump(endpoint); first && depth < kDeepestJump) {
      const std::vector<std::string> before = resolve_as(*first, Role::jump, depth + 1).jumps;
      endpoint.jumps.insert(endpoint.jumps.begin(), before.begin(), before.end());
    }
  }
  if (const auto command = answers.get("proxycommand"); command && !is_none(*command)) {
    endpoint.proxy_command = command;
  }
  if (const auto timeout = read_config_time(answers.get("connecttimeout").value_or("0"));
      timeout && timeout->count() > 0) {
    endpoint.connect_timeout = *timeout;
  }
  endpoint.needs_program =
      undecided.empty() ? find_need_of_program(answers, endpoint) : std::move(undecided);
  const std::string control_path = answers.get("controlpath").value_or("none");
  if (!is_none(control_path)) endpoint.control_path = control_path;
  return endpoint;
}

std::vector<fs::path> usual_identities() {
  const fs::path folder = home_folder() / ".ssh";
  return {folder / "id_ed25519", folder / "id_ecdsa", folder / "id_rsa"};
}

HostError needs_program(const Endpoint& endpoint) {
  return {Failure::unreachable,
          fmt::format("the SSH configuration asks for {}, which only the ssh program does",
                      endpoint.needs_program),
          "it is not used, since the configuration or a flag says libssh: --ssh_program auto"};
}

}  // namespace dtool::ssh
