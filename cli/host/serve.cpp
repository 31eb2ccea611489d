#include "cli/host/serve.h"

#include <exception>
#include <optional>
#include <string>

#include "cli/logs/host/send_log.h"
#include "cli/watch/host/status.h"
#include "ssh/host/files.h"
#include "ssh/host/frames.h"
#include "ssh/host/kill.h"
#include "ssh/host/start.h"

namespace dtool::host {
namespace {

/// Writes the reply to one request. Returns the exit code of the program.
int answer(const Frame& frame, int output) {
  const auto reply = [output](const auto& message) {
    write_all(output, to_frame(message));
    return 0;
  };
  switch (frame.kind) {
    case Kind::kill_request:
      return reply(kill_run(open<KillRequest>(frame)));
    case Kind::start_request:
      return reply(start_job(open<StartRequest>(frame)));
    case Kind::status_request:
      return reply(tell_status(open<StatusRequest>(frame)));
    case Kind::log_request:
      return send_log(open<LogRequest>(frame), output);
    default:
      throw BadMessage("a message of kind " + std::to_string(static_cast<int>(frame.kind)) +
                       " is no request");
  }
}

}  // namespace

int serve(int input, int output) {
  write_all(output, kGreeting);
  FrameReader reader;
  int exit_code = 0;
  try {
    while (const auto bytes = read_some(input)) {
      reader.add(*bytes);
      while (const auto frame = reader.next()) exit_code = answer(*frame, output);
    }
    if (reader.is_inside()) throw BadMessage("the request ends too soon");
  } catch (const std::exception& error) {
    write_all(output, to_frame(Fault{error.what()}));
    return 2;
  }
  return exit_code;
}

}  // namespace dtool::host
