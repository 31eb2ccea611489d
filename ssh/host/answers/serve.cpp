// SPDX-License-Identifier: MIT
// Reads requests, and writes the replies.
#include "ssh/host/answers/answers.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/answers/python_environment.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/kill.h"
#include "ssh/host/start_job.h"
#include "ssh/host/tree/answer_tree.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/own_tree.h"
#include "ssh/host/tree/package_server.h"
#include "ssh/host/tree/take_parcel.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/host/versions.h"
#include "ssh/wire/check.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"

namespace dtool::host {
namespace {

/// In a process of its own, since deleting takes long.
void remove_what_is_old() {
  const pid_t child = ::fork();
  if (child != 0) return;
  ::setsid();
  give_nothing({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  remove_old_trees();
  remove_given_up_copies();
  ::_exit(0);
}

/// Limits under which no run can begin; start-up files of a log-in may set them.
void require_room() {
  const auto require = [](auto resource, rlim_t least, const std::string& what) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur >= least) return;
    throw Refused("a log-in there has " + what + " of " + std::to_string(limit.rlim_cur / 1024) +
                  " kB at most: do its start-up files, such as ~/.bashrc, set that?");
  };
  require(RLIMIT_FSIZE, 1U << 20U, "files (ulimit -f)");
  require(RLIMIT_STACK, 128U << 10U, "a stack (ulimit -s)");
}

/// Writes the reply to one request, which may have more of the input. Returns the exit code of the
/// program. `parcels` go on from one request to the next, of the same command or not.
int answer(const Frame& frame, FrameInput& input, int output, ParcelTaker& parcels) {
  const bool goes_on = frame.kind == Kind::begin_of_requests || frame.kind == Kind::parcel_request;
  if (!goes_on) parcels.end();
  const auto reply = [output](const auto& message) {
    write_all(output, to_frame(message));
    return 0;
  };
  switch (frame.kind) {
    case Kind::begin_of_requests:
      return reply(open<BeginOfRequests>(frame));
    case Kind::kill_request:
      return reply(kill_run(open<KillRequest>(frame)));
    case Kind::start_request:
      reply(start_job(open<StartRequest>(frame)));
      remove_old_versions();
      remove_what_is_old();
      return 0;
    case Kind::status_request:
      return reply(tell_status(open<StatusRequest>(frame)));
    case Kind::check_request:
      require_room();
      return reply(check_host(open<CheckRequest>(frame)));
    case Kind::python_request:
      return reply(ready_python(open<PythonRequest>(frame)));
    case Kind::ready_request:
      require_room();
      return reply(ready_host(open<ReadyRequest>(frame)));
    case Kind::listen_request:
      return reply(listen_for_trial(open<ListenRequest>(frame)));
    case Kind::reach_request:
      reply(tell_clock());
      return reply(reach_for_trial(open<ReachRequest>(frame)));
    case Kind::log_request:
      return send_log(open<LogRequest>(frame), output);
    case Kind::tree_request:
      return reply(answer_tree(open<TreeRequest>(frame), input));
    case Kind::copy_request: {
      const auto request = open<CopyRequest>(frame);
      reply(answer_copy(request, input));
      if (request.settles) remove_what_is_old();
      return 0;
    }
    case Kind::parcel_request:
      return reply(parcels.take(open<ParcelRequest>(frame), input, reply));
    case Kind::place_request:
      return reply(place_tree(open<PlaceRequest>(frame)));
    case Kind::freeze_request:
      return reply(freeze_tree(open<FreezeRequest>(frame), input));
    case Kind::remove_request:
      return reply(remove_run(open<RemoveRequest>(frame)));
    case Kind::kept_request:
      return reply(tell_kept(open<KeptRequest>(frame)));
    case Kind::look_request:
      return reply(look_at_source(open<LookRequest>(frame)));
    default:
      throw BadMessage("a message of kind " + std::to_string(static_cast<int>(frame.kind)) +
                       " is no request");
  }
}

/// Answers one command's requests, up to their end. Sets its exit code. Whether another command may
/// follow.
bool answer_all(FrameInput& input, int output, ParcelTaker& parcels, int& exit_code) {
  std::optional<Frame> frame = input.next();
  for (; frame && frame->kind != Kind::end_of_requests; frame = input.next())
    exit_code = answer(*frame, input, output, parcels);
  return frame || input.skip_to_end_of_requests();
}

}  // namespace

int serve(int input, int output) {
  write_all(output, kGreeting);
  FrameInput frames(input);
  const std::vector<std::string> first_environment = own_environment();
  ParcelTaker parcels;
  int exit_code = 0;
  try {
    while (answer_all(frames, output, parcels, exit_code)) {
      write_all(output, to_frame(EndOfReplies{exit_code}));
      set_environment(first_environment);  // answers change it for what they start
      exit_code = 0;
    }
  } catch (const Refused& refused) {
    write_all(output, to_frame(Fault{refused.what(), refused.hint()}));
    return 2;
  } catch (const std::exception& error) {
    write_all(output, to_frame(Fault{error.what()}));
    return 2;
  }
  return exit_code;
}

}  // namespace dtool::host
