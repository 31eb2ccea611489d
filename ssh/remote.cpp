// SPDX-License-Identifier: MIT
#include "ssh/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "killfiles/printable.h"

namespace dtool::ssh {

std::string_view to_string(Failure failure) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"none", "unreachable", "connect_timed_out", "host_key_unknown", "host_key_changed",
       "host_key_revoked", "host_key_unproven", "not_authenticated", "timed_out", "connection_lost",
       "too_much_output", "not_started", "local_program", "host_program", "unproven", "ended"});
  static_assert(kNames.size() == static_cast<std::size_t>(Failure::ended) + 1);
  return kNames.at(static_cast<std::size_t>(failure));
}

namespace {

[[noreturn]] void refuse(const HostResult& result, std::string_view why) {
  constexpr int kBySignal = 128;
  if (result.exit_code > kBySignal)
    throw host::BadMessage(fmt::format("dtool-host was killed there by signal {} as it answered",
                                       result.exit_code - kBySignal));
  throw host::BadMessage(fmt::format("the answer {} (exit code {}){}{}", why, result.exit_code,
                                     result.err.empty() ? "" : ": ",
                                     killfiles::printable_words(result.err, 500)));
}

}  // namespace

bool is_address(std::string_view text) {
  constexpr std::string_view kMarks = ".:%-_";
  return !text.empty() && text[0] != '-' && std::ranges::all_of(text, [&](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) != 0 || kMarks.find(each) != kMarks.npos;
  });
}

host::Frame read_frame(const HostResult& result, std::size_t number) {
  host::FrameReader reader;
  reader.add(result.out);
  std::optional<host::Frame> frame;
  try {
    for (std::size_t i = 0; i <= number; ++i) {
      // News are no answer: it is missing if dtool-host died after them.
      do frame = reader.next();
      while (frame && frame->kind == host::Kind::tree_news);
    }
  } catch (const host::BadMessage& error) {
    refuse(result, fmt::format("cannot be read, {}", error.what()));
  }
  // dtool-host ends well where its input ends.
  if (!frame && result.out.empty() && result.err.empty() && result.exit_code == 0)
    throw host::BadMessage(
        "the request did not arrive: does a start-up file there, such as ~/.bashrc, read standard "
        "input?");
  if (!frame) refuse(result, "is not whole");
  return *std::move(frame);
}

}  // namespace dtool::ssh
