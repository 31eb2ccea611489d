#include "cli/logs/log_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "ssh/number.h"

namespace dtool::cli {
namespace {

constexpr std::size_t kFingerprint = 512;
/// Two spellings a place.
constexpr int kPlaces = 64;

/// How many bytes at the end of `text` may be the beginning of `mark`.
std::size_t begun(std::string_view text, std::string_view mark) {
  for (std::size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size) {
    if (text.ends_with(mark.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

void LogStream::add(std::string_view bytes) {
  const std::string all = std::exchange(held_, {}).append(bytes);
  std::string_view rest = all;
  for (;;) {
    const std::size_t at = rest.find(mark_);
    if (at == rest.npos) break;
    const std::size_t end = rest.find('\n', at);
    pass_on(rest.substr(0, at));
    if (end == rest.npos) {
      held_ = rest.substr(at);
      return;
    }
    take_mark(rest.substr(at + mark_.size(), end - at - mark_.size()));
    rest.remove_prefix(end + 1);
  }
  const std::size_t held = begun(rest, mark_);
  pass_on(rest.substr(0, rest.size() - held));
  held_ = rest.substr(rest.size() - held);
}

void LogStream::begin_again() {
  held_.clear();
  has_begun_ = false;
}

void LogStream::end() {
  pass_on(std::exchange(held_, {}));
}

void LogStream::take_mark(std::string_view text) {
  constexpr std::string_view kFrom = "from ";
  if (!text.starts_with(kFrom)) {
    on_break(text);
    offset_ = 0;
    last_.clear();
    return;
  }
  text.remove_prefix(kFrom.size());
  const auto from = ssh::read_number<std::uint64_t>(text);
  if (!from) return;
  if (*from != offset_) last_.clear();
  offset_ = *from;
  has_begun_ = true;
}

void LogStream::pass_on(std::string_view bytes) {
  if (bytes.empty() || !has_begun_) return;
  offset_ += bytes.size();
  last_ += bytes.substr(bytes.size() - std::min(bytes.size(), kFingerprint));
  if (last_.size() > kFingerprint) last_.erase(0, last_.size() - kFingerprint);
  on_bytes(bytes);
}

std::string LogStream::last_in_hex() const {
  std::string text;
  for (const char each : last_) text += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return text;
}

std::string make_unique_path() {
  std::random_device random;
  std::string path = "/proc/self/fd";
  for (int i = 0; i < kPlaces; ++i) path += (random() & 1U) != 0 ? "/." : "/";
  return path + "/3";
}

}  // namespace dtool::cli
