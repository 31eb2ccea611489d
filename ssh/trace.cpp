// SPDX-License-Identifier: MIT
#include "ssh/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "killfiles/printable.h"
#include "ssh/wire/check.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/push.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"

namespace dtool::ssh {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestText = 200;

std::string describe_bytes(std::size_t size) {
  return fmt::format("<{} bytes>", size);
}

std::string describe_value(bool value) {
  return value ? "yes" : "no";
}

template <typename Number>
requires(std::is_integral_v<Number>) std::string describe_value(Number value) {
  return fmt::format("{}", value);
}

/// A text with lines is a script or a file.
std::string describe_value(const std::string& value) {
  if (value.size() > kLongestText || value.find('\n') != value.npos)
    return describe_bytes(value.size());
  return fmt::format("\"{}\"", killfiles::printable(value, killfiles::Allowed::nothing));
}

std::string describe_value(const host::Hidden& value) {
  return describe_bytes(value.text.size());
}

template <host::Fielded Struct>
std::string describe_value(const Struct& value);

template <typename Value>
std::string describe_value(const std::optional<Value>& value) {
  return value ? describe_value(*value) : "-";
}

template <typename Value>
std::string describe_value(const std::vector<Value>& values) {
  std::string text;
  for (const Value& each : values) text += (text.empty() ? "" : ", ") + describe_value(each);
  return "[" + text + "]";
}

template <host::Fielded Struct>
std::string describe_value(const Struct& value) {
  std::string text;
  host::visit_fields(const_cast<Struct&>(value), [&text](const auto& field) {
    text += (text.empty() ? "" : ", ") + describe_value(field);
  });
  return "(" + text + ")";
}

template <typename Message>
std::string describe_as(const char* name, const host::Frame& frame) {
  return name + describe_value(host::decode<Message>(frame.body));
}

std::string describe_known(const host::Frame& frame) {
  using namespace host;
  switch (frame.kind) {
#define DTOOL_MESSAGE(number, name, Message, longest) \
  case Kind::name:                                    \
    return describe_as<Message>(#Message, frame);
#define DTOOL_BYTES(number, name, longest) \
  case Kind::name:                         \
    return #name + describe_bytes(frame.body.size());
#include "ssh/wire/kinds.def"
  }
  return {};
}

/// One host's file.
class HostTrace {
 public:
  HostTrace(std::filesystem::path file, Clock::time_point began)
      : file_(std::move(file)), began_(began) {
    std::ofstream(file_, std::ios::trunc);
  }

  void begin(const Task& task) {
    reader_.reset();
    if (const auto* program = std::get_if<LocalProgram>(&task.step)) {
      write("here", killfiles::printable_start(
                        fmt::format("{}", fmt::join(program->arguments, " ")), kLongestText));
      return;
    }
    const Command& command = std::get<Command>(task.step);
    if (command.run_by == RunBy::host_program) {
      reader_.emplace();
      host::FrameReader requests;
      requests.add(command.input);
      write_frames("asked", requests);
      return;
    }
    std::string text = killfiles::printable_start(command.line, kLongestText);
    if (!command.input.empty())
      text += fmt::format(" with input of {} bytes", command.input.size());
    if (command.input_from != nullptr) text += " with what this machine makes";
    write("asked", text);
  }

  void take(Stream stream, std::string_view bytes) {
    if (stream == Stream::out && reader_) {
      reader_->add(bytes);
      write_frames("came", *reader_);
    } else {
      write("came", fmt::format("{} bytes of {}", bytes.size(),
                                stream == Stream::out ? "output" : "errors"));
    }
  }

  void end(const HostResult& result) {
    if (result.failure == Failure::none) {
      write("ended", fmt::format("exit code {}", result.exit_code));
    } else {
      write("ended", fmt::format("{}: {}", to_string(result.failure),
                                 killfiles::printable_start(result.error, kLongestText)));
    }
  }

 private:
  void write_frames(const char* what, host::FrameReader& reader) {
    try {
      while (const auto frame = reader.next()) write(what, describe(*frame));
    } catch (const host::BadMessage& error) {
      write(what, fmt::format("what is no message: {}", error.what()));
      reader = {};
    }
  }

  void write(const char* what, const std::string& text) {
    const std::chrono::duration<double> since = Clock::now() - began_;
    // Opened for each line: a thousand hosts need their descriptors for something else.
    std::ofstream(file_, std::ios::app)
        << fmt::format("{:9.4f} {:5} {}\n", since.count(), what, text);
  }

  std::filesystem::path file_;
  Clock::time_point began_;
  /// The reader of replies, while dtool-host answers.
  std::optional<host::FrameReader> reader_ = {};
};

class TracedRemote : public Remote {
 public:
  TracedRemote(std::unique_ptr<Remote> remote, std::filesystem::path folder)
      : remote_(std::move(remote)), folder_(std::move(folder)) {
    std::error_code fault;
    if (std::filesystem::create_directories(folder_, fault))
      std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    if (!std::filesystem::is_directory(folder_) || ::access(folder_.c_str(), W_OK) != 0)
      throw std::invalid_argument(
          fmt::format("--trace: nothing can be written into the folder {}", folder_.string()));
  }

  const std::vector<Host>& hosts() const override { return remote_->hosts(); }
  bool interrupted() const override { return remote_->interrupted(); }

  std::vector<HostResult> run(std::vector<Task> tasks, Events& events,
                              const RunOptions& options) override;

  HostTrace& trace(std::size_t host) {
    const auto found = traces_.find(host);
    if (found != traces_.end()) return found->second;
    // A name of a host may have what a file's may not.
    std::string name = fmt::format("{:04}_{}.trace", host, to_string(hosts()[host]));
    for (char& each : name) {
      if (each == '/') each = '_';
    }
    return traces_.try_emplace(host, folder_ / name, began_).first->second;
  }

 private:
  std::unique_ptr<Remote> remote_;
  std::filesystem::path folder_;
  Clock::time_point began_ = Clock::now();
  std::map<std::size_t, HostTrace> traces_;
};

/// Writes the events down, and passes them on.
class TracedEvents : public Events {
 public:
  TracedEvents(TracedRemote& remote, Events& events) : remote_(remote), events_(events) {}

  void on_output(std::size_t host, Stream stream, std::string_view bytes) override {
    remote_.trace(host).take(stream, bytes);
    events_.on_output(host, stream, bytes);
  }
  void on_progress(std::size_t host, const Transferred& input) override {
    events_.on_progress(host, input);
  }
  std::optional<NextTask> next_task(std::size_t host, const HostResult& result) override {
    remote_.trace(host).end(result);
    auto next = events_.next_task(host, result);
    if (next && next->task) remote_.trace(host).begin(*next->task);
    return next;
  }
  void on_result(std::size_t host, const HostResult& result) override {
    events_.on_result(host, result);
  }
  void on_silence(const std::vector<std::size_t>& waiting) override { events_.on_silence(waiting); }
  void on_interrupt(const std::vector<std::size_t>& running) override {
    events_.on_interrupt(running);
  }

 private:
  TracedRemote& remote_;
  Events& events_;
};

std::vector<HostResult> TracedRemote::run(std::vector<Task> tasks, Events& events,
                                          const RunOptions& options) {
  for (const Task& task : tasks) trace(task.host).begin(task);
  TracedEvents tracing(*this, events);
  return remote_->run(std::move(tasks), tracing, options);
}

}  // namespace

std::string describe(const host::Frame& frame) {
  try {
    const std::string text = describe_known(frame);
    if (!text.empty()) return text;
  } catch (const host::BadMessage&) {
  }
  return fmt::format("a message of kind {}, {} bytes", static_cast<int>(frame.kind),
                     frame.body.size());
}

std::unique_ptr<Remote> traced(std::unique_ptr<Remote> remote,
                               const std::filesystem::path& folder) {
  return std::make_unique<TracedRemote>(std::move(remote), folder);
}

}  // namespace dtool::ssh
