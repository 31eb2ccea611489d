// SPDX-License-Identifier: MIT
// The rules are those of OpenSSH's hostfile.c and sshkey.c; known_hosts_peer_test.cpp compares them
// with ssh itself.
#include "ssh/keys/known_hosts_line.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "ssh/config/config_value.h"
#include "ssh/machine/base64.h"

namespace dtool::ssh {
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
    const std::string_view pattern = names.substr(0, names.find(','));
    if (pattern.size() - (pattern.starts_with('!') ? 1 : 0) >= kTooLong) return false;
    patterns.push_back(to_lower(pattern));
    names.remove_prefix(std::min(pattern.size() + 1, names.size()));
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
  constexpr std::size_t kLength = 4;
  if (blob.size() < kLength) return std::nullopt;
  std::uint32_t size = 0;
  for (const char each : blob.substr(0, kLength))
    size = size << 8 | static_cast<std::uint8_t>(each);
  blob.remove_prefix(kLength);
  if (size == 0 || size >= blob.size()) return std::nullopt;
  return blob.substr(0, size);
}

std::optional<std::string> decode_base64(std::string_view text) {
  return text.empty() ? std::nullopt : from_base64(text);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& each : lower) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return lower;
}

}  // namespace dtool::ssh
