// SPDX-License-Identifier: MIT
#include "ssh/kept/connection_key.h"

#include <fmt/format.h>

#include <system_error>

#include "ssh/machine/file_stamp.h"
#include "ssh/machine/home_folder.h"
#include "ssh/machine/read_file.h"
#include "ssh/machine/sha256.h"
#include "ssh/quote.h"

namespace dtool::ssh {
namespace {

/// Another number here keeps versions of dtool apart that would not understand each other.
constexpr int kProtocol = 2;

/// One line with the value quoted, so that no value can look like the next line.
void add(std::string& key, std::string_view name, std::string_view value) {
  key += fmt::format("{} {}\n", name, quote(value));
}

void add_file(std::string& key, std::string_view name, const std::filesystem::path& file) {
  add(key, name, fmt::format("{} {}", file.string(), stamp_of(status_of(file))));
}

void add_endpoint(std::string& key, const Endpoint& endpoint) {
  add(key, "address", endpoint.address);
  add(key, "port", std::to_string(endpoint.port));
  add(key, "user", endpoint.user);
  add(key, "family", std::to_string(static_cast<int>(endpoint.address_family)));
  for (const auto& [keyword, value] : endpoint.encryption) add(key, keyword, value);
  add(key, "key_name", endpoint.key_name);
  add(key, "key_port", std::to_string(endpoint.key_port));
  for (const std::filesystem::path& file : endpoint.known_hosts_files)
    add(key, "known_hosts", file.string());
  add(key, "only_named", endpoint.only_named_identities ? "yes" : "no");
  if (!endpoint.identity_agent.empty()) add_file(key, "agent", endpoint.identity_agent);
  for (const std::filesystem::path& file : endpoint.certificate_files)
    add_file(key, "certificate", file);
  std::vector<std::filesystem::path> files = endpoint.identity_files;
  if (files.empty()) files = usual_identities();
  for (const std::filesystem::path& file : files) {
    add_file(key, "identity", file);
    add_file(key, "certificate", file.string() + "-cert.pub");
  }
}

}  // namespace

std::string connection_key(const ClientConfig& config, const Host& host) {
  static const std::string boot = boot_id();
  std::error_code ignored;
  static const std::string network =
      std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  std::string key = fmt::format("dtool connection {}\n", kProtocol);
  add(key, "boot", boot);
  add(key, "network", network);
  add(key, "home", home_folder().string());
  const Endpoint endpoint = config.resolve(host);
  add_endpoint(key, endpoint);
  for (const std::string& jump : endpoint.jumps) {
    add(key, "jump", jump);
    add_endpoint(key, config.resolve_jump(parse_host(jump)));
  }
  return key;
}

std::string socket_prefix() {
  static const std::string boot = boot_id();
  return boot.substr(0, 8) + "-";
}

std::string socket_name(std::string_view key) {
  Sha256 digest;
  digest.add(key);
  return socket_prefix() + digest.hex().substr(0, 16);
}

}  // namespace dtool::ssh
