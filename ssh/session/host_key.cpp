// SPDX-License-Identifier: MIT
#include "ssh/session/host_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>

#include "ssh/host_error.h"
#include "ssh/machine/files.h"
#include "ssh/quote.h"
#include "ssh/session/connector.h"

namespace dtool::ssh {
namespace {

/// The key that the server presented; null if there is none.
KeyHandle key_of(ssh_session session) {
  ssh_key key = nullptr;
  ssh_get_server_publickey(session, &key);
  return KeyHandle(key);
}

/// The bytes of a public key; none if there is no key.
std::string blob_of(const KeyHandle& key) {
  return decode_base64(public_text(key.get())).value_or("");
}

}  // namespace

KeyVerdict verdict_on(const Session& session, KnownHosts& known_hosts) {
  const std::string blob = blob_of(key_of(session.handle()));
  if (blob.empty()) return {HostKeyState::unreachable};
  return known_hosts.judge(session.endpoint(), blob);
}

void describe_key(const Session& session, HostKey& report) {
  const KeyHandle key = key_of(session.handle());
  const std::string text = public_text(key.get());
  if (text.empty()) return;
  report.type = type_of_blob(blob_of(key)).value_or("");
  report.line = fmt::format("{} {} {}\n", name_on_record(session.endpoint()), report.type, text);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key.get(), SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == SSH_OK) {
    const StringHandle print(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size));
    report.fingerprint = print.get();
    ssh_clean_pubkey_hash(&hash);
  }
}

bool is_no_file(const std::filesystem::path& known_hosts) {
  return known_hosts == "/dev/null";
}

HostError not_trusted(const Endpoint& endpoint, const HostKey& presented,
                      const KeyVerdict& verdict) {
  const std::string place = place_of(verdict);
  switch (verdict.state) {
    case HostKeyState::unknown:
      return {Failure::host_key_unknown,
              fmt::format("the host key is not in {}", endpoint.known_hosts.string()),
              hint_at_trust(endpoint.known_hosts)};
    case HostKeyState::changed:
      return {Failure::host_key_changed,
              fmt::format("the host key {} {} is not the one in {}", presented.type,
                          presented.fingerprint, place),
              fmt::format("someone may be listening in; if you know that the host was set up anew: "
                          "ssh-keygen -R {} -f {}",
                          quote(name_on_record(endpoint)), quote(verdict.file.string()))};
    case HostKeyState::revoked:
      return {Failure::host_key_revoked,
              fmt::format("the host key {} {} is marked as revoked in {}", presented.type,
                          presented.fingerprint, place),
              "the server may not be the real host; the host needs a new key"};
    case HostKeyState::certified:
      return {Failure::host_key_unproven,
              fmt::format("the host is known by a certificate authority only ({}), which libssh "
                          "cannot ask",
                          place),
              "the ssh program can: --ssh_program auto"};
    case HostKeyState::doubtful:
      return {Failure::host_key_unproven,
              fmt::format("{} cannot be read, and may be about the host", place),
              verdict.line == 0 ? "make it readable for you, or leave it out"
                                : "mend that line or take it out"};
    default:
      return {Failure::unreachable, "the server presented no host key"};
  }
}

std::string known_hosts_stamp(const Endpoint& endpoint, std::time_t now) {
  constexpr std::time_t kCoarsestClock = 2;
  std::string stamp;
  for (const std::filesystem::path& file : endpoint.known_hosts_files) {
    const struct stat status = status_of(file);
    const bool is_young = now - status.st_ctim.tv_sec < kCoarsestClock;
    if (is_young && S_ISREG(status.st_mode)) return {};
    stamp += stamp_of(status) + " ";
  }
  return stamp;
}

std::string hint_at_trust(const std::filesystem::path& known_hosts) {
  const std::string trust = fmt::format("dtool trust --runs_on {}", kHostsInHint);
  if (!is_no_file(known_hosts)) return fmt::format("look at it and accept it with: {}", trust);
  return fmt::format("{}: {}; then: {}", kKeepsNoKeys, kHowToKeepKeys, trust);
}

void Session::require_known_host(KnownHosts& known_hosts) const {
  const KeyVerdict verdict = verdict_on(*this, known_hosts);
  if (verdict.state == HostKeyState::known) return;
  HostKey presented;
  describe_key(*this, presented);
  throw not_trusted(endpoint_, presented, verdict);
}

std::string Session::host_key() const {
  HostKey presented;
  describe_key(*this, presented);
  return presented.fingerprint.empty() ? "" : presented.type + " " + presented.fingerprint;
}

bool Session::is_still_known(KnownHosts& known_hosts, std::time_t now) {
  const std::string stamp = known_hosts_stamp(endpoint_, now);
  if (!stamp.empty() && stamp == known_hosts_stamp_) return true;
  const bool is_known = verdict_on(*this, known_hosts).state == HostKeyState::known;
  known_hosts_stamp_ = is_known ? stamp : "";
  return is_known;
}

}  // namespace dtool::ssh
