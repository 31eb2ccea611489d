// SPDX-License-Identifier: MIT
#include "cli/command_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/action.h"
#include "cli/host_output.h"
#include "cli/large_texts.h"
#include "ssh/host.h"
#include "ssh/host_error.h"
#include "ssh/machine/files.h"
#include "ssh/machine/run_to_end.h"

namespace dtool::cli {
namespace {

using ssh::Stream;

/// Keeps both streams of each host for --json.
class KeptOutput : public ssh::Events {
 public:
  explicit KeptOutput(std::size_t hosts) : texts_(2 * hosts) {}

  void on_output(std::size_t host, Stream stream, std::string_view bytes) override;
  std::string mark(std::size_t host, Stream stream) const {
    return texts_.mark(place(host, stream));
  }
  const LargeTexts& texts() const { return texts_; }

 private:
  static std::size_t place(std::size_t host, Stream stream) {
    return 2 * host + (stream == Stream::err ? 1 : 0);
  }
  LargeTexts texts_;
};

void KeptOutput::on_output(std::size_t host, Stream stream, std::string_view bytes) {
  const std::size_t out = place(host, Stream::out), err = place(host, Stream::err);
  if (texts_.size(out) + texts_.size(err) + bytes.size() > ssh::kMostHeld) {
    texts_.clear(out);
    texts_.clear(err);
    throw ssh::too_much_output();
  }
  texts_.add(place(host, stream), bytes);
}

/// Writes both streams of each host into files of its own, as they come: HOST.out and HOST.err.
/// Those of an earlier command go first. No file stays open, for there may be many.
class OutputFiles : public AnswerCount {
 public:
  OutputFiles(Console& console, const std::vector<ssh::Host>& hosts, const std::string& folder)
      : AnswerCount(console, hosts, "answered") {
    const auto refuse = [](const std::string& path, const std::string& why) {
      throw UsageError(fmt::format("--outdir {}: {}", path, why),
                       "--outdir names a folder, new or with files of earlier commands, in which "
                       "files can be made");
    };
    std::error_code fault;
    std::filesystem::create_directories(folder, fault);
    if (fault) refuse(folder, fault.message());
    for (const ssh::Host& host : hosts) {
      const std::string name = ssh::to_string(host);
      if (name.find('/') != name.npos) refuse(folder, "no file can be named " + name);
      for (const char* end : {".out", ".err"}) {
        const std::string& path = paths_.emplace_back(std::filesystem::path(folder) / (name + end));
        const bool is_free = ::unlink(path.c_str()) == 0 || errno == ENOENT;
        if (!is_free || !opened(path)) refuse(path, std::strerror(errno));
      }
    }
  }

  void on_output(std::size_t host, Stream stream, std::string_view bytes) override {
    const std::string& to = path(host, stream);
    const ssh::OwnedFd file = opened(to);
    bool is_written = static_cast<bool>(file);
    while (is_written && !bytes.empty()) {
      const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
      is_written = count > 0 || errno == EINTR;
    }
    if (is_written) return;
    throw ssh::HostError(
        ssh::Failure::local_program,
        fmt::format("its output cannot be written to {}: {}", to, std::strerror(errno)),
        "--outdir names another folder");
  }

  const std::string& path(std::size_t host, Stream stream) const {
    return paths_[2 * host + (stream == Stream::err ? 1 : 0)];
  }

 private:
  static ssh::OwnedFd opened(const std::string& path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    return ssh::OwnedFd(::open(path.c_str(), kFlags, 0666));
  }

  std::vector<std::string> paths_;
};

/// The exit code of dtool, which that of the hosts' command may be. A host without an answer counts
/// as with ssh; one whose command was ended for another's failure does not count.
int passed_on(const std::string& wanted, const std::vector<ssh::HostResult>& results,
              const ssh::Remote& remote) {
  constexpr int kNoAnswer = 255;
  const int usual = exit_code_of(results, remote);
  if (wanted.empty() || usual == kInterrupted) return usual;
  std::vector<int> codes;
  for (const ssh::HostResult& each : results) {
    if (each.was_ended) continue;
    codes.push_back(each.failure == ssh::Failure::none ? each.exit_code : kNoAnswer);
  }
  if (codes.empty()) return usual;
  const auto [least, most] = std::ranges::minmax(codes);
  return wanted == "max" || least == most ? most : kSomeFailed;
}

int show_document(Console& console, ssh::Remote& remote, const OutputOptions& options,
                  std::string_view command, const RunAll& run_all) {
  std::optional<OutputFiles> files;
  if (!options.outdir.empty()) files.emplace(console, remote.hosts(), options.outdir);
  KeptOutput output(remote.hosts().size());
  const auto results = files ? run_all(*files) : run_all(output);
  nlohmann::json hosts = nlohmann::json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    nlohmann::json host = to_json(results[i]);
    if (files) {
      host["stdout_file"] = files->path(i, Stream::out);
      host["stderr_file"] = files->path(i, Stream::err);
    } else {
      host["stdout"] = output.mark(i, Stream::out);
      host["stderr"] = output.mark(i, Stream::err);
    }
    if (options.tell) options.tell(i, host);
    hosts.push_back(std::move(host));
  }
  const int exit_code = passed_on(options.exit_code, results, remote);
  console.document({{"command", command}, {"exit_code", exit_code}, {"hosts", hosts}},
                   output.texts());
  return exit_code;
}

}  // namespace

void add_output_options(Options& command, OutputOptions& options) {
  const Option fold =
      command.add_flag("-b,--fold", options.fold, "show identical outputs once, with their hosts");
  const Option diff = command.add_flag(
      "--diff", options.diff, "show the commonest output, and how the others differ from it");
  command
      .add_option("--outdir DIR", options.outdir,
                  "write the output into DIR, as HOST.out and HOST.err, instead of showing it")
      .excludes(fold)
      .excludes(diff);
  command
      .add_option("--exit_code remote|max", options.exit_code,
                  "pass on the command's exit code: the one of all hosts, or 1 if they differ "
                  "(remote); the largest one (max), as pdsh -S and clush -S do")
      .one_of({"remote", "max"});
}

int show_output(Console& console, ssh::Remote& remote, const OutputOptions& options,
                std::string_view command, const RunAll& run_all) {
  if (console.json()) return show_document(console, remote, options, command, run_all);
  std::vector<ssh::HostResult> results;
  if (!options.outdir.empty()) {
    OutputFiles files(console, remote.hosts(), options.outdir);
    files.set_on_interrupt(options.on_interrupt);
    results = run_all(files);
    console.note(fmt::format("the output is in {}", options.outdir));
  } else if (options.fold || options.diff) {
    if (options.diff && !ssh::run_to_end({"diff", "--version"}))
      throw UsageError("--diff needs the program diff, which is not installed on this machine",
                       "on Debian: sudo apt-get install diffutils; --fold needs no program");
    FoldedOutput output(console, remote.hosts(), "answered");
    output.set_on_interrupt(options.on_interrupt);
    results = run_all(output);
    if (options.diff) output.print_differences(results);
    if (!options.diff) output.print();
  } else {
    StreamedOutput output(console, remote.hosts(), "answered");
    output.set_on_interrupt(options.on_interrupt);
    results = run_all(output);
  }
  report_failures(console, results, command);
  return passed_on(options.exit_code, results, remote);
}

}  // namespace dtool::cli
