#include "ssh/identity.h"

#include <fstream>
#include <system_error>

namespace dtool::ssh {
namespace {

/// Called for an encrypted key only. Says no: dtool asks no questions while it connects.
int refuse_passphrase(const char*, char*, std::size_t, int, int, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return -1;
}

void add_certificate(ssh_key key, const std::filesystem::path& file) {
  const std::string path = file.string() + "-cert.pub";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  ssh_key certificate = nullptr;
  if (ssh_pki_import_cert_file(path.c_str(), &certificate) != SSH_OK) return;
  const KeyHandle owned(certificate);
  ssh_pki_copy_cert_to_privkey(certificate, key);
}

Identity read(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {nullptr, "not there"};
  bool was_encrypted = false;
  ssh_key key = nullptr;
  const int rc =
      ssh_pki_import_privkey_file(file.c_str(), nullptr, refuse_passphrase, &was_encrypted, &key);
  if (rc == SSH_OK) {
    add_certificate(key, file);
    return {KeyHandle(key), ""};
  }
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
  keys.erase("");
  return keys;
}

const Identity& IdentityCache::load(const std::filesystem::path& file) {
  const auto found = identities_.find(file);
  if (found != identities_.end()) return found->second;
  return identities_.emplace(file, read(file)).first->second;
}

}  // namespace dtool::ssh
