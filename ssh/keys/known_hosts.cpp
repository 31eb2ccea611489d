// SPDX-License-Identifier: MIT
#define OPENSSL_SUPPRESS_DEPRECATED
#include "ssh/keys/known_hosts.h"

#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "ssh/config/config_block.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/wire/words.h"

// EVP would look the algorithm up by name, lock and count references for each of the millions of
// hashes that a thousand hosts take; these are the same code without that.

namespace dtool::ssh {

namespace {

/// A hashed name (OpenSSH's HashKnownHosts, Debian's default). The two blocks that the salt fills
/// are hashed once, here.
struct Hashed {
  SHA_CTX inner;
  SHA_CTX outer;
  std::array<unsigned char, SHA_DIGEST_LENGTH> hash;
};

/// RFC 2104: the state after the first block, in which the key stands XORed with `pad`.
SHA_CTX keyed(const std::array<unsigned char, SHA_DIGEST_LENGTH>& key, unsigned char pad) {
  std::array<unsigned char, SHA_CBLOCK> block{};
  block.fill(pad);
  for (std::size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
  SHA_CTX state;
  SHA1_Init(&state);
  SHA1_Update(&state, block.data(), block.size());
  return state;
}

bool is_of(const Hashed& hashed, std::string_view name) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA_CTX inner = hashed.inner;
  SHA1_Update(&inner, name.data(), name.size());
  SHA1_Final(digest.data(), &inner);
  SHA_CTX outer = hashed.outer;
  SHA1_Update(&outer, digest.data(), digest.size());
  SHA1_Final(digest.data(), &outer);
  return digest == hashed.hash;
}

bool is_certificate(std::string_view blob) {
  const auto type = type_of_blob(blob);
  return type && type->find("-cert-v") != type->npos;
}

bool has_readable_names(const KnownHostsLine& line) {
  return !line.names.starts_with('|') || read_hashed_name(line.names);
}

}  // namespace

std::string place_of(const KeyVerdict& verdict) {
  return verdict.line == 0 ? verdict.file.string()
                           : fmt::format("{}:{}", verdict.file.string(), verdict.line);
}

struct KnownHostsFile::Lines {
  std::string stamp;  ///< the stamp of the file when it was read
  std::vector<KnownHostsLine> all;
  /// The lines by each name that stands there plainly.
  std::unordered_map<std::string, std::vector<std::size_t>> by_name;
  std::vector<std::pair<std::size_t, Hashed>> hashed;
  std::vector<std::size_t> patterns;
  std::vector<std::size_t> for_everyone;  ///< the lines whose names cannot be read
  std::unordered_map<std::string, std::vector<std::size_t>>
      answers;  ///< found before: hashes cost time

  std::vector<std::size_t> find(const std::string& name) const;
  void read(std::string_view text);
  void add_names(std::string_view names, std::size_t at);
};

void KnownHostsFile::Lines::add_names(std::string_view names, std::size_t at) {
  if (names.starts_with('|')) {
    if (const auto one = read_hashed_name(names)) {
      hashed.emplace_back(at, Hashed{keyed(one->salt, 0x36), keyed(one->salt, 0x5c), one->hash});
    } else {
      for_everyone.push_back(at);
    }
    return;
  }
  if (names.find_first_of("*?!") != names.npos) {
    patterns.push_back(at);
    return;
  }
  while (!names.empty()) by_name[host::to_lower(host::cut(names, ','))].push_back(at);
}

void KnownHostsFile::Lines::read(std::string_view text) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    if (auto line = read_known_hosts_line(host::cut_line(text), number)) {
      all.push_back(std::move(*line));
      add_names(all.back().names, all.size() - 1);
    }
  }
}

KnownHostsFile::KnownHostsFile(std::filesystem::path file) : file_(std::move(file)) {}
KnownHostsFile::~KnownHostsFile() = default;

void KnownHostsFile::read_if_changed() {
  const struct stat status = status_of(file_);
  const std::string stamp = stamp_of(status);
  if (lines_ != nullptr && lines_->stamp == stamp) return;
  lines_ = std::make_unique<Lines>();
  lines_->stamp = stamp;
  const bool is_none = status.st_mode == 0 || S_ISDIR(status.st_mode) ||
                       status.st_rdev == ::makedev(1, 3);  // /dev/null
  if (is_none) return;
  if (!S_ISREG(status.st_mode)) {  // ssh may read there that a key is revoked
    lines_->all.push_back({0, KnownHostsMarker::wrong, "", ""});
    lines_->for_everyone.push_back(0);
    return;
  }
  try {
    lines_->read(read_file(file_));
  } catch (const std::system_error&) {  // its content is unknown
    lines_->all.emplace_back();
    lines_->for_everyone.push_back(0);
  }
}

std::vector<std::size_t> KnownHostsFile::Lines::find(const std::string& name) const {
  std::vector<std::size_t> chosen = for_everyone;
  if (const auto found = by_name.find(name); found != by_name.end())
    chosen.insert(chosen.end(), found->second.begin(), found->second.end());
  for (const auto& [at, one] : hashed) {
    if (is_of(one, name)) chosen.push_back(at);
  }
  for (const std::size_t at : patterns) {
    if (is_about(all[at].names, name)) chosen.push_back(at);
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::vector<const KnownHostsLine*> KnownHostsFile::lines_about(const std::string& name) {
  read_if_changed();
  const auto [found, is_new] = lines_->answers.try_emplace(name);
  if (is_new) found->second = lines_->find(name);
  std::vector<const KnownHostsLine*> lines;
  for (const std::size_t at : found->second) lines.push_back(&lines_->all[at]);
  return lines;
}

/// The first line of each kind.
struct KnownHosts::Findings {
  std::optional<KeyVerdict> revoked;    ///< this key is
  std::optional<KeyVerdict> unclear;    ///< it may be: a marker or a key beside one is not legible
  std::optional<KeyVerdict> same;       ///< this key is on record
  std::optional<KeyVerdict> other;      ///< another key is
  std::optional<KeyVerdict> malformed;  ///< a line whose key cannot be read
  std::optional<KeyVerdict> authority;

  void add(const KnownHostsLine& line, const std::filesystem::path& file, std::string_view blob);
};

void KnownHosts::Findings::add(const KnownHostsLine& line, const std::filesystem::path& file,
                               std::string_view blob) {
  const auto note = [&](std::optional<KeyVerdict>& place, HostKeyState state) {
    if (!place) place = KeyVerdict{state, file, line.number};
  };
  const auto key = read_key_blob(line.key);
  const bool may_be_this_key = !key || *key == blob;
  if (line.marker == KnownHostsMarker::revoked && key == blob) {
    note(revoked, HostKeyState::revoked);
  } else if (line.marker == KnownHostsMarker::revoked) {
    // A revoked certificate stands for its key, which only ssh can take out of it.
    if (!key || is_certificate(*key)) note(unclear, HostKeyState::doubtful);
  } else if (line.marker == KnownHostsMarker::wrong && may_be_this_key) {
    note(unclear, HostKeyState::doubtful);
  } else if (line.marker == KnownHostsMarker::wrong || !key || !has_readable_names(line)) {
    note(malformed, HostKeyState::doubtful);
  } else if (line.marker == KnownHostsMarker::authority) {
    note(authority, HostKeyState::certified);
  } else if (key == blob) {
    note(same, HostKeyState::known);
  } else {
    note(other, HostKeyState::changed);
  }
}

KnownHosts::Findings KnownHosts::look(const Endpoint& endpoint, const std::string& name,
                                      std::string_view blob) {
  Findings findings;
  for (const std::filesystem::path& file : endpoint.known_hosts_files) {
    for (const KnownHostsLine* line :
         files_.try_emplace(file, file).first->second.lines_about(name))
      findings.add(*line, file, blob);
  }
  return findings;
}

KeyVerdict KnownHosts::judge(const Endpoint& endpoint, std::string_view blob) {
  const std::string name = name_on_record(endpoint);
  const std::string plain_name = host::to_lower(endpoint.key_name);
  Findings found = look(endpoint, name, blob);
  for (const auto& each : {found.revoked, found.unclear, found.same, found.other}) {
    if (each) return *each;
  }
  if (name != plain_name) {
    // As ssh does: a line about the machine's usual port also proves its other ports. A different
    // key in such a line says nothing about them.
    const Findings plain = look(endpoint, plain_name, blob);
    for (const auto& each : {plain.revoked, plain.unclear, plain.same}) {
      if (each) return *each;
    }
    if (!found.authority) found.authority = plain.authority;
  }
  for (const auto& each : {found.malformed, found.authority}) {
    if (each) return *each;
  }
  return {};
}

std::vector<std::string> KnownHosts::types_of(const Endpoint& endpoint) {
  std::vector<std::string> types, keys, revoked;  // `keys` has the first key of each type
  const std::string name = name_on_record(endpoint);
  for (const std::filesystem::path& file : endpoint.known_hosts_files) {
    for (const KnownHostsLine* line :
         files_.try_emplace(file, file).first->second.lines_about(name)) {
      const auto key = read_key_blob(line->key);
      if (!key || !has_readable_names(*line)) continue;
      if (line->marker == KnownHostsMarker::revoked) revoked.push_back(*key);
      const std::string type(*type_of_blob(*key));
      const bool is_new = std::ranges::find(types, type) == types.end();
      if (line->marker != KnownHostsMarker::none || !is_new) continue;
      types.push_back(type);
      keys.push_back(*key);
    }
  }
  std::vector<std::string> good;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (std::ranges::find(revoked, keys[i]) == revoked.end()) good.push_back(types[i]);
  }
  return good;
}

/// All that libssh takes unasked: neither DSA nor signatures with SHA-1.
std::vector<std::string> key_algorithms(const std::vector<std::string>& types_on_record) {
  std::vector<std::string> algorithms = {"ssh-ed25519",
                                         "ecdsa-sha2-nistp521",
                                         "ecdsa-sha2-nistp384",
                                         "ecdsa-sha2-nistp256",
                                         "sk-ssh-ed25519@openssh.com",
                                         "sk-ecdsa-sha2-nistp256@openssh.com",
                                         "rsa-sha2-512",
                                         "rsa-sha2-256"};
  std::ranges::stable_partition(algorithms, [&](const std::string& algorithm) {
    const std::string type = algorithm.starts_with("rsa-sha2-") ? "ssh-rsa" : algorithm;
    return std::ranges::find(types_on_record, type) != types_on_record.end();
  });
  return algorithms;
}

std::string name_on_record(const Endpoint& endpoint) {
  const std::string name = host::to_lower(endpoint.key_name);
  return endpoint.key_port == 22 ? name : fmt::format("[{}]:{}", name, endpoint.key_port);
}

// The rules are those of OpenSSH's hostfile.c and sshkey.c; known_hosts_peer_test.cpp compares them
// with ssh itself.

namespace {

constexpr std::string_view kBlanks = " \t";

/// Takes the next word off the front, and the blanks around it.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return word;
}

KnownHostsMarker marker_of(std::string_view word) {
  if (word == "@revoked") return KnownHostsMarker::revoked;
  if (word == "@cert-authority") return KnownHostsMarker::authority;
  return KnownHostsMarker::wrong;
}

std::optional<std::array<unsigned char, 20>> decode_digest(std::string_view text) {
  const auto bytes = decode_base64(text);
  std::array<unsigned char, 20> digest{};
  if (!bytes || bytes->size() != digest.size()) return std::nullopt;
  std::ranges::copy(*bytes, digest.begin());
  return digest;
}

/// Signatures with SHA-2 have names of their own, and the key is the same.
std::string_view key_type(std::string_view word) {
  return word == "rsa-sha2-256" || word == "rsa-sha2-512" ? "ssh-rsa" : word;
}

}  // namespace

std::optional<KnownHostsLine> read_known_hosts_line(std::string_view text, std::size_t number) {
  text = text.substr(0, text.find('\0'));
  while (text.ends_with('\r')) text.remove_suffix(1);
  std::string_view word = take_word(text);
  if (word.empty() || word.starts_with('#')) return std::nullopt;
  KnownHostsLine line;
  line.number = number;
  if (word.starts_with('@')) {
    line.marker = marker_of(word);
    for (word = take_word(text); word.starts_with('@'); word = take_word(text))
      line.marker = KnownHostsMarker::wrong;
  }
  line.names = word;
  line.key = text;
  return line;
}

std::optional<HashedName> read_hashed_name(std::string_view names) {
  constexpr std::string_view kMagic = "|1|";
  if (!names.starts_with(kMagic)) return std::nullopt;
  names.remove_prefix(kMagic.size());
  const std::size_t bar = names.find('|');
  if (bar == names.npos) return std::nullopt;
  const auto salt = decode_digest(names.substr(0, bar));
  const auto hash = decode_digest(names.substr(bar + 1));
  if (!salt || !hash) return std::nullopt;
  return HashedName{*salt, *hash};
}

bool is_about(std::string_view names, std::string_view name) {
  constexpr std::size_t kTooLong = 1023;  // ssh reads no further
  std::vector<std::string> patterns;
  while (!names.empty()) {
    const std::string_view pattern = host::cut(names, ',');
    if (pattern.size() - (pattern.starts_with('!') ? 1 : 0) >= kTooLong) return false;
    patterns.push_back(host::to_lower(pattern));
  }
  return matches_any(name, patterns);
}

std::optional<std::string> read_key_blob(std::string_view text) {
  const std::string_view type = take_word(text);
  auto blob = decode_base64(take_word(text));
  if (!blob || type_of_blob(*blob) != key_type(type)) return std::nullopt;
  return blob;
}

std::optional<std::string_view> type_of_blob(std::string_view blob) {
  const auto type = take_string(blob);
  return type && !type->empty() && !blob.empty() ? type : std::nullopt;
}

std::optional<std::string> decode_base64(std::string_view text) {
  return text.empty() ? std::nullopt : from_base64(text);
}

}  // namespace dtool::ssh
