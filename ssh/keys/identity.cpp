// SPDX-License-Identifier: MIT
#include "ssh/keys/identity.h"

#include <cstdint>
#include <fstream>
#include <string_view>
#include <system_error>

#include "ssh/keys/known_hosts.h"

namespace dtool::ssh {
namespace {

/// Called for an encrypted key only. Says no: dtool asks no questions while it connects.
int refuse_passphrase(const char*, char*, std::size_t, int, int, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

/// A key's bytes behind the first `count` texts in them; empty if they end before.
std::string_view behind_texts(std::string_view bytes, int count) {
  for (; count > 0; --count) {
    const auto text = type_of_blob(bytes);
    if (!text) return {};
    bytes.remove_prefix(sizeof(std::uint32_t) + text->size());
  }
  return bytes;
}

/// A certificate has a type, a nonce, and then the key's own fields (OpenSSH's PROTOCOL.certkeys).
bool is_certificate_of(ssh_key certificate, ssh_key key) {
  const auto whole = decode_base64(public_text(certificate));
  const auto own = decode_base64(public_text(key));
  return whole && own && behind_texts(*whole, 2).starts_with(behind_texts(*own, 1));
}

/// The key with the certificate, if there is a key and the certificate belongs to it. libssh
/// compares only their types.
KeyHandle certified(ssh_key key, ssh_key certificate) {
  if (!is_certificate_of(certificate, key)) return nullptr;
  KeyHandle copy(ssh_key_dup(key));
  if (ssh_pki_copy_cert_to_privkey(certificate, copy.get()) != SSH_OK) return nullptr;
  return copy;
}

Identity read(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {nullptr, "not there"};
  bool was_encrypted = false;
  ssh_key key = nullptr;
  const int rc =
      ssh_pki_import_privkey_file(file.c_str(), nullptr, refuse_passphrase, &was_encrypted, &key);
  if (rc == SSH_OK) return {KeyHandle(key), ""};
  if (was_encrypted) return {nullptr, "encrypted; add it to the agent with ssh-add"};
  return {nullptr, "not a private key that can be read"};
}

}  // namespace

std::string public_text(ssh_key key) {
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &text) != SSH_OK) return {};
  return StringHandle(text).get();
}

std::set<std::string> public_keys(const std::vector<std::filesystem::path>& files) {
  std::set<std::string> keys;
  for (const std::filesystem::path& file : files) {
    for (const char* ending : {".pub", "-cert.pub"}) {
      std::ifstream lines(file.string() + ending);
      std::string type, key;
      if (lines >> type >> key) keys.insert(key);
    }
    ssh_key key = nullptr;
    if (ssh_pki_import_pubkey_file(file.c_str(), &key) == SSH_OK)
      keys.insert(public_text(KeyHandle(key).get()));
    key = nullptr;
    // Older formats hide the public part, too, where they are encrypted.
    if (ssh_pki_import_privkey_file(file.c_str(), "", nullptr, nullptr, &key) == SSH_OK)
      keys.insert(public_text(KeyHandle(key).get()));
  }
  return keys;
}

const Identity& IdentityCache::load(const std::filesystem::path& file) {
  const auto [found, is_new] = identities_.try_emplace(file);
  if (is_new) found->second = read(file);
  return found->second;
}

const Identity& IdentityCache::load_certificate(const std::filesystem::path& file,
                                                const std::vector<std::filesystem::path>& keys) {
  std::vector<std::filesystem::path> place = keys;
  place.insert(place.begin(), file);
  const auto [found, is_new] = certified_.try_emplace(std::move(place));
  Identity& identity = found->second;
  if (!is_new) return identity;
  std::error_code ignored;
  ssh_key certificate = nullptr;
  if (!std::filesystem::exists(file, ignored)) {
    identity.problem = "not there";
  } else if (ssh_pki_import_cert_file(file.c_str(), &certificate) != SSH_OK) {
    identity.problem = "not a certificate that can be read";
  } else {
    const KeyHandle owned(certificate);
    identity.problem = "its private key is in none of the files";
    for (const std::filesystem::path& each : keys) {
      identity.key = certified(load(each).key.get(), certificate);
      if (identity.key == nullptr) continue;
      identity.problem = "";
      break;
    }
  }
  return identity;
}

std::vector<Credential> IdentityCache::credentials(
    const std::vector<std::filesystem::path>& files,
    const std::vector<std::filesystem::path>& certificates) {
  std::vector<Credential> all;
  for (const std::filesystem::path& file : certificates)
    all.push_back({file, &load_certificate(file, files)});
  for (const std::filesystem::path& file : files) {
    const Identity& plain = load(file);
    all.push_back({file, &plain});
    if (!certificates.empty() || plain.key == nullptr) continue;
    const std::filesystem::path own = file.string() + "-cert.pub";
    const Identity& certificate = load_certificate(own, {file});
    if (certificate.problem != "not there") all.push_back({own, &certificate});
  }
  return all;
}

}  // namespace dtool::ssh
