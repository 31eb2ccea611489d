#include "cli/host/serve.h"

#include <exception>
#include <optional>
#include <string>

#include "cli/watch/host/status.h"
#include "ssh/host/files.h"
#include "ssh/host/frames.h"
#include "ssh/host/kill.h"
#include "ssh/host/start.h"

namespace dtool::host {
namespace {

/// The reply to one request.
std::string answer(const Frame& frame) {
  switch (frame.kind) {
    case Kind::kill_request:
      return to_frame(kill_run(open<KillRequest>(frame)));
    case Kind::start_request:
      return to_frame(start_job(open<StartRequest>(frame)));
    case Kind::status_request:
      return to_frame(tell_status(open<StatusRequest>(frame)));
    default:
      throw BadMessage("a message of kind " + std::to_string(static_cast<int>(frame.kind)) +
                       " is no request");
  }
}

}  // namespace

int serve(int input, int output) {
  write_all(output, kGreeting);
  FrameReader reader;
  try {
    while (const auto bytes = read_some(input)) {
      reader.add(*bytes);
      while (const auto frame = reader.next()) write_all(output, answer(*frame));
    }
    if (reader.is_inside()) throw BadMessage("the request ends too soon");
  } catch (const std::exception& error) {
    write_all(output, to_frame(Fault{error.what()}));
    return 2;
  }
  return 0;
}

}  // namespace dtool::host
