#include "ssh/host_request.h"

#include <fmt/format.h>

#include <optional>

namespace dtool::ssh {
namespace {

[[noreturn]] void refuse(const HostResult& result, std::string_view why) {
  throw host::BadMessage(fmt::format("the answer {} (exit code {}){}{}", why, result.exit_code,
                                     result.err.empty() ? "" : ": ", result.err));
}

}  // namespace

host::Frame read_frame(const HostResult& result) {
  host::FrameReader reader;
  reader.add(result.out);
  std::optional<host::Frame> frame;
  try {
    frame = reader.next();
  } catch (const host::BadMessage& error) {
    refuse(result, fmt::format("cannot be read, {}", error.what()));
  }
  if (!frame) refuse(result, "is not whole");
  return *std::move(frame);
}

}  // namespace dtool::ssh
