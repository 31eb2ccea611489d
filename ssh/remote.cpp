// SPDX-License-Identifier: MIT
#include "ssh/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "killfiles/printable.h"

namespace dtool::ssh {

std::string_view to_string(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "none";
    case Failure::unreachable:
      return "unreachable";
    case Failure::connect_timed_out:
      return "connect_timed_out";
    case Failure::host_key_unknown:
      return "host_key_unknown";
    case Failure::host_key_changed:
      return "host_key_changed";
    case Failure::host_key_revoked:
      return "host_key_revoked";
    case Failure::host_key_unproven:
      return "host_key_unproven";
    case Failure::not_authenticated:
      return "not_authenticated";
    case Failure::timed_out:
      return "timed_out";
    case Failure::connection_lost:
      return "connection_lost";
    case Failure::too_much_output:
      return "too_much_output";
    case Failure::not_started:
      return "not_started";
    case Failure::local_program:
      return "local_program";
    case Failure::host_program:
      return "host_program";
    case Failure::unproven:
      return "unproven";
    case Failure::ended:
      return "ended";
  }
  return "none";
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
