// SPDX-License-Identifier: MIT
#include "cli/large_texts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "ssh/host_error.h"
#include "ssh/machine/encodings.h"

namespace dtool::cli {
namespace {

constexpr std::size_t kMostInMemory = 64U << 10U;

ssh::HostError no_room() {
  return {ssh::Failure::local_program,
          fmt::format("its output cannot be kept on this machine's disk: {}", std::strerror(errno)),
          "is /var/tmp full? TMPDIR names another folder"};
}

/// How much of `bytes` can be handed on before the next bytes are known: the rest may be the
/// beginning of a character.
std::size_t whole_part(std::string_view bytes) {
  constexpr std::size_t kLongestCharacter = 4;
  for (std::size_t back = 1; back <= std::min(kLongestCharacter, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xc0U) != 0x80U) return byte < 0x80 ? bytes.size() : bytes.size() - back;
  }
  return bytes.size();
}

}  // namespace

LargeTexts::LargeTexts(std::size_t count)
    : texts_(count), secret_(count == 0 ? "" : ssh::random_hex(16)) {}

void LargeTexts::add(std::size_t text, std::string_view bytes) {
  Text& to = texts_.at(text);
  to.rest += bytes;
  to.size += bytes.size();
  if (to.rest.size() > kMostInMemory) move_to_disk(to);
}

void LargeTexts::move_to_disk(Text& text) {
  if (!file_ && !(file_ = ssh::file_without_name())) throw no_room();
  std::string_view left = text.rest;
  while (!left.empty()) {
    const ssize_t count = ::pwrite(file_.get(), left.data(), left.size(),
                                   static_cast<off_t>(file_size_ + text.rest.size() - left.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw no_room();
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  text.on_disk.push_back({file_size_, text.rest.size()});
  file_size_ += text.rest.size();
  text.rest.clear();
}

std::string LargeTexts::mark(std::size_t text) const {
  return fmt::format("{}.{}", secret_, text);
}

std::optional<LargeTexts::Mark> LargeTexts::find_mark(std::string_view document) const {
  const std::size_t at = secret_.empty() ? document.npos : document.find(secret_);
  if (at == document.npos) return std::nullopt;
  Mark mark{at, 0, 0};
  const char* number = document.data() + at + secret_.size() + 1;
  const auto read = std::from_chars(number, document.data() + document.size(), mark.text);
  mark.size = static_cast<std::size_t>(read.ptr - document.data()) - at;
  return mark;
}

void LargeTexts::read(std::size_t text, const std::function<void(std::string_view)>& take) const {
  std::string bytes;
  const auto hand_on = [&bytes, &take] {
    const std::size_t whole = whole_part(bytes);
    take(std::string_view(bytes).substr(0, whole));
    bytes.erase(0, whole);
  };
  for (const Piece& piece : texts_.at(text).on_disk) {
    const std::size_t before = bytes.size();
    bytes.resize(before + piece.size);
    for (std::size_t read = 0; read < piece.size;) {
      const ssize_t count = ::pread(file_.get(), bytes.data() + before + read, piece.size - read,
                                    static_cast<off_t>(piece.at + read));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0)
        throw std::system_error(count == 0 ? EIO : errno, std::generic_category(),
                                "cannot read what was kept of the output");
      read += static_cast<std::size_t>(count);
    }
    hand_on();
  }
  bytes += texts_[text].rest;
  if (!bytes.empty()) take(bytes);
}

}  // namespace dtool::cli
