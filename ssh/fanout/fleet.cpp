// SPDX-License-Identifier: MIT
#include "ssh/fanout/fleet.h"

#include <fmt/format.h>

#include <signal.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ssh/fanout/links.h"
#include "ssh/fanout/remote_shell.h"
#include "ssh/fanout/serving_program.h"
#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/files.h"
#include "ssh/machine/interrupt_listener.h"
#include "ssh/machine/interrupts.h"
#include "ssh/machine/process.h"
#include "ssh/session/connection.h"
#include "ssh/trace.h"

namespace dtool::ssh {
namespace {

constexpr const char* kNotStarted = "interrupted before its turn";
constexpr std::chrono::seconds kSilence{3};  // then hosts that are waited for are named

/// A task and what becomes of it.
struct Slot {
  std::size_t index = 0;  ///< its own place
  Task task = {};
  HostResult result = {};
  bool is_answered = false;
  std::optional<Clock::time_point> begun = {};
  Connection* in_shell = nullptr;  ///< set while its command runs in a login shell

  bool is_awaited() const { return begun && !is_answered; }
};

/// One run() in progress: workers pull the next task and write into its slot.
struct FleetRound {
  std::vector<Slot> slots;
  std::size_t next = 0;
  std::size_t workers = 0;
  Events* events = nullptr;
  RunOptions options;
  std::exception_ptr failure;
  Clock::time_point told = Clock::now();      ///< the time when events last heard of a host
  std::optional<Host> failed = {};            ///< the first one, if it ends the others' commands
  std::optional<SharedOutputs> outputs = {};  ///< the inputs that tasks share
};

void set_not_started(HostResult& result) {
  result.failure = Failure::not_started;
  result.error = kNotStarted;
}

HostError ended_for(const Host& failed) {
  return {Failure::ended, fmt::format("ended because {} failed", to_string(failed))};
}

void set_ended(HostResult& result, const Host& failed) {
  result.failure = Failure::ended;
  result.error = ended_for(failed).what();
  result.hint.clear();
  result.was_ended = true;
}

class Fleet : public Remote {
 public:
  Fleet(std::vector<Host> hosts, const ConnectOptions& options)
      : links_(std::make_unique<HostLinks>(hosts, options)),
        reactor_(links_->reactor()),
        width_(make_room_for_files(hosts.size(), std::max<std::size_t>(options.width, 1))),
        has_room_for_programs_(has_room_for_files(hosts.size(), width_)),
        hosts_(std::move(hosts)),
        silent_(options.silent),
        interrupts_(reactor_, [this](Asked what) { on_asked(what); }) {
    ::signal(SIGPIPE, SIG_IGN);
  }

  ~Fleet() override {
    if (!interrupted()) links_->end_programs();
    interrupts_.cancel();
    if (!interrupted()) links_->leave_masters();
    if (!interrupted() && leave_to_keeper(links_)) return;
    reactor_.wind_up();
  }

  const std::vector<Host>& hosts() const override { return hosts_; }
  bool interrupted() const override { return is_interrupted_; }
  std::vector<HostResult> run(std::vector<Task> tasks, Events& events,
                              const RunOptions& options) override;

 private:
  void on_asked(Asked what);
  void give_up(FleetRound& round, std::exception_ptr error);
  void tell(FleetRound& round, const std::function<void(Events&)>& what);
  void start_workers(FleetRound& round);
  void watch_silence(FleetRound& round);
  asio::awaitable<void> work(FleetRound& round);
  asio::awaitable<void> answer(FleetRound& round, Slot& slot);
  std::optional<NextTask> next_task(FleetRound& round, Slot& slot);
  asio::awaitable<void> pause(std::chrono::milliseconds duration);
  asio::awaitable<Connection*> connect(std::size_t host);
  asio::awaitable<int> attempt(FleetRound& round, Slot& slot);
  using OnOutput = std::function<void(Stream, std::string_view)>;
  asio::awaitable<int> ask_program(FleetRound& round, Slot& slot, Follows follows,
                                   OnOutput on_output, Deadline deadline);
  asio::awaitable<int> run_in_shell(FleetRound& round, Slot& slot, Connection& connection,
                                    CommandStreams streams, Deadline deadline);
  asio::awaitable<bool> feed(FleetRound& round, Slot& slot, int pipe, const Deadline* deadline);
  asio::awaitable<void> feed_shell(FleetRound& round, Slot& slot, OwnedFd pipe,
                                   const Deadline* deadline);
  void end_others(FleetRound& round, const HostResult& result);

  std::unique_ptr<HostLinks> links_;
  Reactor& reactor_;
  std::size_t width_;
  bool has_room_for_programs_;  ///< there is room for programs that wait on all hosts
  std::vector<Host> hosts_;
  std::shared_ptr<SilentHosts> silent_;
  Interrupts interrupts_;
  bool is_interrupted_ = false;
  FleetRound* round_ = nullptr;  ///< the round that run() is at; set while run() runs
  asio::steady_timer silence_{reactor_.context()};
};

/// An exception of the observer of events (the disk is full, the reader of a pipe has left) is
/// passed on by run(). The coroutines unwind as after an interrupt, and the other hosts' answers
/// are not waited for.
void Fleet::give_up(FleetRound& round, std::exception_ptr error) {
  if (!round.failure) round.failure = error;
  reactor_.abandon();
}

void Fleet::tell(FleetRound& round, const std::function<void(Events&)>& what) {
  if (round.failure) return;
  round.told = Clock::now();
  try {
    what(*round.events);
  } catch (const HostError&) {
    throw;
  } catch (...) {
    give_up(round, std::current_exception());
  }
}

void Fleet::watch_silence(FleetRound& round) {
  silence_.expires_after(std::chrono::seconds(1));
  silence_.async_wait([this, &round](const boost::system::error_code& error) {
    if (error || round_ != &round) return;  // the run of that round is over
    const Clock::time_point told = round.told;
    std::vector<std::size_t> waiting;
    for (const Slot& each : round.slots)
      if (each.is_awaited()) waiting.push_back(each.task.host);
    if (Clock::now() - told >= kSilence)
      tell(round, [&waiting](Events& events) { events.on_silence(waiting); });
    round.told = told;
    watch_silence(round);
  });
}

void Fleet::on_asked(Asked what) {
  const bool is_first = !std::exchange(is_interrupted_, true);
  if (round_ == nullptr) return;
  const bool leaves = what == Asked::to_leave || round_->options.on_interrupt == OnInterrupt::leave;
  std::vector<std::size_t> running;  // those that are waited for
  for (const Slot& each : round_->slots)
    if (each.is_awaited() && what == Asked::to_stop) running.push_back(each.task.host);
  links_->interrupt();
  if (is_first) tell(*round_, [&running](Events& events) { events.on_interrupt(running); });
  if (!leaves) return;
  tell_children_to_end();
  reactor_.abandon();
}

/// Waits in vain only once for a host, if the steps of a command share what they learnt.
asio::awaitable<Connection*> Fleet::connect(std::size_t host) {
  if (silent_ == nullptr) co_return co_await links_->connect(host);
  if (const auto failure = silent_->find(hosts_[host])) throw *failure;
  Connection* connection = nullptr;
  try {
    connection = co_await links_->connect(host);
  } catch (const HostError& error) {
    silent_->note_failure(hosts_[host], error);
    throw;
  }
  silent_->note_answer(hosts_[host]);
  co_return connection;
}

asio::awaitable<int> Fleet::attempt(FleetRound& round, Slot& slot) {
  const Task& task = slot.task;
  HostResult& result = slot.result;
  const TaskOptions options = task.options ? *task.options : round.options;
  const auto* command = std::get_if<Command>(&task.step);
  const bool is_for_program = command != nullptr && command->run_by == RunBy::host_program;
  Connection* connection = co_await connect(task.host);
  if (!is_for_program || links_->program(task.host).is_ending()) {
    co_await links_->end_program(task.host);
    connection = co_await connect(task.host);
  }
  result.host_key = connection->host_key();
  if (interrupted()) throw HostError(Failure::not_started, kNotStarted);
  if (round.failed) throw ended_for(*round.failed);
  OnOutput on_output = [this, &round, &result, &task, options](Stream stream,
                                                               std::string_view bytes) {
    if (options.keep_output == KeepOutput::yes) {
      if (result.out.size() + result.err.size() + bytes.size() > kMostHeld) {
        result.out = result.err = {};
        throw too_much_output();
      }
      (stream == Stream::out ? result.out : result.err) += bytes;
    }
    tell(round, [&](Events& events) { events.on_output(task.host, stream, bytes); });
  };
  const Deadline deadline = options.timeout ? after(*options.timeout) : kNoDeadline;
  if (is_for_program)
    co_return co_await ask_program(round, slot, options.follows, on_output, deadline);
  if (command == nullptr)
    co_return co_await run_local_program(reactor_, *connection, std::get<LocalProgram>(task.step),
                                         on_output, deadline);
  CommandStreams streams;
  streams.on_output = on_output;
  co_return co_await run_in_shell(round, slot, *connection, std::move(streams), deadline);
}

/// A program that waits may have been lost meanwhile: then it is asked over a new connection.
asio::awaitable<int> Fleet::ask_program(FleetRound& round, Slot& slot, Follows follows,
                                        OnOutput on_output, Deadline deadline) {
  const std::size_t host = slot.task.host;
  HostRequests requests;
  requests.write = [this, &round, &slot, deadline](int pipe) {
    return feed(round, slot, pipe, &deadline);
  };
  requests.on_output = on_output;
  requests.are_followed = follows == Follows::more && has_room_for_programs_;
  std::string& log_in_said = slot.result.log_in_said;
  bool is_lost = false;
  try {
    co_return co_await links_->program(host).answer(requests, log_in_said, deadline);
  } catch (const HostError&) {
    is_lost = links_->program(host).was_lost_before() && !interrupted();
    if (!is_lost) throw;
  }
  links_->drop(host);
  co_await connect(host);
  co_return co_await links_->program(host).answer(requests, log_in_said, deadline);
}

/// Hands a host's command its own input and what it shares with others. Whether it has all.
asio::awaitable<bool> Fleet::feed(FleetRound& round, Slot& slot, int pipe,
                                  const Deadline* deadline) {
  const Command& command = std::get<Command>(slot.task.step);
  if (command.input_from == nullptr) {
    const std::string_view input = command.input;
    co_return co_await write_all(reactor_, pipe, input, *deadline);
  }
  SharedOutput& output = round.outputs->of(command.input_from);
  std::function<void(const Transferred&)> on_sent = [this, &round,
                                                     &slot](const Transferred& input) {
    round.outputs->note_taken(slot.index, input.bytes);
    const auto& soon = std::get<Command>(slot.task.step).input_soon;
    if (soon && input.all) round.outputs->make_soon(soon);
    tell(round, [&](Events& events) { events.on_progress(slot.task.host, input); });
  };
  co_return co_await output.send(pipe, command.input, deadline, std::move(on_sent));
}

/// A command whose input cannot be had to its end must not take it for whole.
asio::awaitable<void> Fleet::feed_shell(FleetRound& round, Slot& slot, OwnedFd pipe,
                                        const Deadline* deadline) {
  std::exception_ptr failure;
  try {
    co_await feed(round, slot, pipe.get(), deadline);
  } catch (...) {  // whatever it is, the command is told to end first
    failure = std::current_exception();
    if (slot.in_shell != nullptr) slot.in_shell->expire();
  }
  round.outputs->note_taken(slot.index, SharedOutputs::kAll);
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<int> Fleet::run_in_shell(FleetRound& round, Slot& slot, Connection& connection,
                                         CommandStreams streams, Deadline deadline) {
  const Command& command = std::get<Command>(slot.task.step);
  Pipe input;
  Deadline end_of_input = kNoDeadline;
  TaskGroup feeding(reactor_);
  if (command.input_from == nullptr) {
    streams.input = command.input;
  } else {
    input = make_pipe(NonBlocking::both);
    streams.input_fd = input.reader.get();
    streams.on_input_taken = [&input] { input.reader.reset(); };
    feeding.spawn(feed_shell(round, slot, std::move(input.writer), &end_of_input));
  }
  slot.in_shell = &connection;
  int exit_code = -1;
  std::exception_ptr failure;
  try {
    exit_code = co_await connection.execute(command.line, std::move(streams), deadline);
  } catch (...) {  // whatever it is, the input must end first
    failure = std::current_exception();
  }
  slot.in_shell = nullptr;
  input.reader.reset();
  end_of_input = Clock::now();
  co_await feeding.join();  // an input that could not be had is the better explanation
  if (failure) std::rethrow_exception(failure);
  co_return exit_code;
}

asio::awaitable<void> Fleet::answer(FleetRound& round, Slot& slot) {
  HostResult& result = slot.result;
  result = {};
  result.host = hosts_[slot.task.host];
  try {
    result.exit_code = co_await attempt(round, slot);
  } catch (const HostError& error) {
    result.failure = error.failure();
    result.error = error.what();
    result.hint = error.hint();
    const bool is_of_address =
        error.failure() == Failure::unreachable || error.failure() == Failure::connect_timed_out;
    const std::string address = is_of_address ? links_->address_of(result.host) : "";
    if (address != result.host.name) result.address = address;
  } catch (const std::exception& error) {
    // A jump host or a setting that cannot be read; else this machine lacks threads or memory.
    const bool is_setting = dynamic_cast<const std::invalid_argument*>(&error) != nullptr;
    result.failure = is_setting ? Failure::unreachable : Failure::local_program;
    result.error = error.what();
  }
  const bool was_cut = result.failure == Failure::timed_out ||
                       result.failure == Failure::connection_lost ||
                       result.failure == Failure::not_started || result.failure == Failure::ended;
  if (round.failed && was_cut) set_ended(result, *round.failed);
  result.elapsed =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *slot.begun);
  // A connection on which something went wrong is not used again; of what went wrong on this
  // machine it knows nothing.
  const bool was_here = result.failure == Failure::local_program;
  if (result.failure != Failure::none && !was_here) links_->drop(slot.task.host);
}

std::optional<NextTask> Fleet::next_task(FleetRound& round, Slot& slot) {
  std::optional<NextTask> next;
  tell(round, [&](Events& events) { next = events.next_task(slot.task.host, slot.result); });
  // It would be answered like that again, for ever.
  if (slot.result.failure == Failure::not_started) return std::nullopt;
  return next;
}

void Fleet::end_others(FleetRound& round, const HostResult& result) {
  const bool goes_on = round.options.on_failure == OnFailure::go_on;
  if (goes_on || result.ok() || round.failed || interrupted()) return;
  round.failed = result.host;
  links_->interrupt();
  for (const Slot& each : round.slots)
    if (each.in_shell != nullptr) each.in_shell->expire();
}

/// An interrupt ends it; the task that follows tells so.
asio::awaitable<void> Fleet::pause(std::chrono::milliseconds duration) {
  if (duration == std::chrono::milliseconds(0)) co_return;
  try {
    co_await reactor_.sleep(duration);
  } catch (const HostError&) {
  }
}

asio::awaitable<void> Fleet::work(FleetRound& round) {
  while (round.next < round.slots.size()) {
    Slot& slot = round.slots[round.next++];
    if (interrupted()) {
      set_not_started(slot.result);
    } else if (round.failed) {
      set_ended(slot.result, *round.failed);
    } else {
      slot.begun = Clock::now();
      co_await answer(round, slot);
      for (auto next = next_task(round, slot); next; next = next_task(round, slot)) {
        const bool is_settled = next->task.has_value();
        if (is_settled) slot.task = std::move(*next->task);
        const auto duration = next->pause;
        co_await pause(duration);
        if (is_settled) co_await answer(round, slot);
        if (!is_settled && interrupted()) set_not_started(slot.result);
      }
    }
    assert(!slot.is_answered);  // a host is never counted twice
    slot.is_answered = true;
    round.outputs->note_taken(slot.index, SharedOutputs::kAll);
    end_others(round, slot.result);
    tell(round, [&slot](Events& events) { events.on_result(slot.task.host, slot.result); });
  }
}

void Fleet::start_workers(FleetRound& round) {
  round.workers = std::min(width_, round.slots.size());
  for (std::size_t i = round.workers; i > 0; --i) {
    asio::co_spawn(reactor_.context(), work(round), [this, &round](std::exception_ptr error) {
      if (error) give_up(round, error);
      if (--round.workers == 0) reactor_.context().stop();
    });
  }
}

std::vector<HostResult> Fleet::run(std::vector<Task> tasks, Events& events,
                                   const RunOptions& options) {
  FleetRound round;
  using enum SharedOutputs::Limits;
  round.outputs.emplace(reactor_, tasks.size(), tasks.size() <= width_ ? yes : no);
  for (Task& task : tasks) {
    Slot& slot = round.slots.emplace_back(Slot{round.slots.size(), std::move(task)});
    slot.result.host = hosts_.at(slot.task.host);
  }
  round.events = &events;
  round.options = options;
  if (options.on_failure == OnFailure::end_others) round.failed = options.failed;
  if (round.slots.empty()) return {};
  round_ = &round;
  interrupts_.look();
  start_workers(round);
  watch_silence(round);
  reactor_.context().restart();
  reactor_.context().run();
  round_ = nullptr;
  silence_.cancel();
  if (round.failure) std::rethrow_exception(round.failure);
  std::vector<HostResult> results;
  for (Slot& each : round.slots) results.push_back(std::move(each.result));
  return results;
}

}  // namespace

std::unique_ptr<Remote> make_fleet(std::vector<Host> hosts, const ConnectOptions& options) {
  std::unique_ptr<Remote> fleet = std::make_unique<Fleet>(std::move(hosts), options);
  return options.trace.empty() ? std::move(fleet) : traced(std::move(fleet), options.trace);
}

}  // namespace dtool::ssh
