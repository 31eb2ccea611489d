// SPDX-License-Identifier: MIT
#include "ssh/program/program_scan.h"

#include <sstream>
#include <string>

#include "ssh/host_error.h"
#include "ssh/session/libssh.h"

namespace dtool::ssh {
namespace {

std::string fingerprint_of(const std::string& type, const std::string& key) {
  ssh_key read = nullptr;
  const ssh_keytypes_e kind = ssh_key_type_from_name(type.c_str());
  if (ssh_pki_import_pubkey_base64(key.c_str(), kind, &read) != SSH_OK) return {};
  const KeyHandle owned(read);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(read, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != SSH_OK) return {};
  const StringHandle text(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size));
  ssh_clean_pubkey_hash(&hash);
  return text.get();
}

}  // namespace

asio::awaitable<void> scan_over_program(Masters& masters, HostKey& report) {
  const Host host = report.host;
  const Masters::Presented presented = co_await masters.ask_for_key(host);
  report.known_hosts = presented.known_hosts;
  if (!presented.failure) {
    report.state = HostKeyState::known;
    co_return;
  }
  const Failure failure = presented.failure->failure();
  if (failure == Failure::host_key_changed) report.state = HostKeyState::changed;
  if (failure != Failure::host_key_unknown) throw *presented.failure;
  std::istringstream words(presented.line);
  std::string names, key;
  words >> names >> report.type >> key;
  report.fingerprint = fingerprint_of(report.type, key);
  // A key that cannot be shown cannot be confirmed by the user.
  if (report.fingerprint.empty()) throw *presented.failure;
  report.line = presented.line;
  report.state = HostKeyState::unknown;
}

}  // namespace dtool::ssh
