#include "ssh/known_hosts.h"

// EVP would look the algorithm up by name, lock and count references for each of the millions of
// hashes that a thousand hosts take; these are the same code without that.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ssh/file_stamp.h"
#include "ssh/host_error.h"
#include "ssh/read_file.h"

namespace dtool::ssh {
namespace {

using Digest = std::array<unsigned char, SHA_DIGEST_LENGTH>;

/// `|1|salt|hash`: the name's HMAC-SHA1 under the salt (OpenSSH's HashKnownHosts, Debian's
/// default). The two blocks that the salt fills are hashed once, here.
struct Hashed {
  SHA_CTX inner;
  SHA_CTX outer;
  Digest hash;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& each : result)
    each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return result;
}

/// Twenty bytes in base64, which both parts of a hashed name are.
std::optional<Digest> decode(std::string_view text) {
  constexpr std::size_t kEncoded = 28;
  if (text.size() != kEncoded || text.back() != '=') return std::nullopt;
  std::array<unsigned char, kEncoded> bytes{};
  if (EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) < SHA_DIGEST_LENGTH)
    return std::nullopt;
  Digest digest{};
  std::copy_n(bytes.begin(), digest.size(), digest.begin());
  return digest;
}

/// RFC 2104: the state after the first block, in which the key stands XORed with `pad`.
SHA_CTX keyed(const Digest& key, unsigned char pad) {
  std::array<unsigned char, SHA_CBLOCK> block{};
  block.fill(pad);
  for (std::size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
  SHA_CTX state;
  SHA1_Init(&state);
  SHA1_Update(&state, block.data(), block.size());
  return state;
}

std::optional<Hashed> read_hashed(std::string_view word) {
  constexpr std::string_view kMagic = "|1|";
  if (!word.starts_with(kMagic)) return std::nullopt;
  word.remove_prefix(kMagic.size());
  const std::size_t bar = word.find('|');
  if (bar == word.npos) return std::nullopt;
  const auto salt = decode(word.substr(0, bar));
  const auto hash = decode(word.substr(bar + 1));
  if (!salt || !hash) return std::nullopt;
  return Hashed{keyed(*salt, 0x36), keyed(*salt, 0x5c), *hash};
}

bool is_of(const Hashed& hashed, std::string_view name) {
  Digest digest;
  SHA_CTX inner = hashed.inner;
  SHA1_Update(&inner, name.data(), name.size());
  SHA1_Final(digest.data(), &inner);
  SHA_CTX outer = hashed.outer;
  SHA1_Update(&outer, digest.data(), digest.size());
  SHA1_Final(digest.data(), &outer);
  return digest == hashed.hash;
}

/// Nothing where it cannot be read: then nobody is known.
std::string text_of(const std::filesystem::path& file) {
  try {
    return read_file(file);
  } catch (const std::system_error&) {
    return "";
  }
}

/// The names under which a line may know the host.
std::vector<std::string> names_of(std::string_view name, std::uint16_t port) {
  const std::string plain = lower(name);
  std::vector<std::string> names = {plain};
  if (port != 22) names.push_back(fmt::format("[{}]:{}", plain, port));
  return names;
}

}  // namespace

struct KnownHostsFile::Lines {
  std::string stamp;  ///< of the file when it was read
  std::vector<std::string> all;
  std::unordered_map<std::string, std::vector<std::size_t>> by_name;  ///< that stands there plainly
  std::vector<std::pair<std::size_t, Hashed>> hashed;
  std::vector<std::size_t> for_everyone;  ///< patterns, markers, what is not understood

  void add(std::string_view line);
  void add_names(std::string_view names, std::size_t at);
};

void KnownHostsFile::Lines::add_names(std::string_view names, std::size_t at) {
  if (const auto one = read_hashed(names)) {
    hashed.emplace_back(at, *one);
    return;
  }
  if (names.find_first_of("*?!@|") != names.npos) {
    for_everyone.push_back(at);
    return;
  }
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    std::string name = lower(names.substr(0, comma));
    // libssh takes `[name]:22` for the name alone as well.
    constexpr std::string_view kUsualPort = "]:22";
    if (name.starts_with('[') && name.ends_with(kUsualPort))
      name = name.substr(1, name.size() - 1 - kUsualPort.size());
    by_name[name].push_back(at);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
}

void KnownHostsFile::Lines::add(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == line.npos || line[begin] == '#') return;
  all.emplace_back(line);
  const std::string_view rest = line.substr(begin);
  add_names(rest.substr(0, rest.find_first_of(" \t\r")), all.size() - 1);
}

KnownHostsFile::KnownHostsFile(std::filesystem::path file) : file_(std::move(file)) {}
KnownHostsFile::~KnownHostsFile() = default;

void KnownHostsFile::read_if_changed() {
  const struct stat status = status_of(file_);
  const std::string stamp = stamp_of(status);
  if (lines_ != nullptr && lines_->stamp == stamp) return;
  lines_ = std::make_unique<Lines>();
  lines_->stamp = stamp;
  const std::string text = S_ISREG(status.st_mode) ? text_of(file_) : "";
  for (std::string_view left = text; !left.empty();) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    lines_->add(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
}

std::string KnownHostsFile::lines_about(std::string_view name, std::uint16_t port) {
  read_if_changed();
  std::vector<std::size_t> chosen = lines_->for_everyone;
  for (const std::string& each : names_of(name, port)) {
    if (const auto found = lines_->by_name.find(each); found != lines_->by_name.end())
      chosen.insert(chosen.end(), found->second.begin(), found->second.end());
    for (const auto& [at, hashed] : lines_->hashed) {
      if (is_of(hashed, each)) chosen.push_back(at);
    }
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  std::string text;
  for (const std::size_t at : chosen) text.append(lines_->all[at]).append("\n");
  return text;
}

OwnedFd KnownHosts::excerpt(const std::filesystem::path& file, std::string_view name,
                            std::uint16_t port) {
  const std::string lines = files_.try_emplace(file, file).first->second.lines_about(name, port);
  if (lines.empty()) return {};
  OwnedFd fd = memory_file(lines);
  if (!fd) {
    throw HostError(Failure::unreachable, fmt::format("cannot keep the lines of {} about {}: {}",
                                                      file.string(), name, std::strerror(errno)));
  }
  return fd;
}

}  // namespace dtool::ssh
