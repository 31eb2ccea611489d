// SPDX-License-Identifier: MIT
#include "sync/rsync.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "ssh/quote.h"
#include "ssh/wire/words.h"
#include "sync/staging.h"

namespace dtool::tree_sync {
namespace {

template <typename Number>
std::optional<Number> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  return number;
}

template <typename Number>
Number number_after(std::string_view text, std::string_view label) {
  const std::size_t found = text.rfind(label);
  if (found == text.npos) return 0;
  return leading_number<Number>(text.substr(found + label.size())).value_or(0);
}

/// Level 1: zstd keeps up with a 1 Gbit/s network, and zlib, all that rsync before 3.2 has, is not
/// too slow.
void compress(ssh::LocalProgram& program, Link link) {
  std::vector<std::string>& words = program.arguments;
  if (link == Link::network) words.insert(words.end(), {"-z", "--zl=1"});
}

}  // namespace

Sent read_sent(std::string_view out) {
  Sent sent;
  sent.files = number_after<std::size_t>(out, "\nNumber of regular files transferred:");
  sent.bytes = number_after<std::uint64_t>(out, "\nTotal transferred file size:");
  return sent;
}

ssh::LocalProgram pull_program(const Source& source, const std::string& destination, Link link,
                               std::chrono::seconds silence) {
  ssh::LocalProgram program;
  program.arguments = {
      "rsync",
      "-e",
      std::string(ssh::kRemoteShell),
      fmt::format("--rsync-path=cd {} && exec rsync", ssh::quote_path(source.folder)),
      "--recursive",
      "--sparse",
      "--times",
      "--modify-window=-1",
      "--links",
      "--safe-links",
      // Else a file of the size and time that a broken-off one has would pass for it.
      fmt::format("--partial-dir={}", kPartial),
      // The files that are in their places.
      "--compare-dest=..",
      // Marks and parts of other commands that are at work there.
      "--filter=- .~dtool~*",
      fmt::format("--timeout={}", silence.count()),
      // All names first: else how far it is would be told of what was found so far.
      "--no-inc-recursive",
      "--stats",
      "--info=progress2,name1",  // names also what it leaves out
      "--no-human-readable",
      "--outbuf=N",
  };
  std::vector<std::string>& words = program.arguments;
  compress(program, link);
  if (!source.left_out.empty()) words.push_back("--filter=- /" + source.left_out);
  std::vector<std::string> files = source.files;
  if (!source.file.empty()) files.push_back(source.file);
  if (!files.empty()) {
    // Of what is gone there, nothing stays aside.
    words.insert(words.end(),
                 {"--no-recursive", "--files-from=-", "--from0", "--delete-missing-args"});
    for (const std::string& file : files) program.input += '/' + file + '\0';
  } else if (!source.only.empty()) {
    words.insert(words.end(), {"--prune-empty-dirs", "--filter=+ */"});
    for (std::string pattern : source.only) {
      while (pattern.ends_with('/')) pattern.pop_back();
      words.push_back("--filter=+ " + pattern);
      // The folder's whole content, if the pattern names a folder.
      words.push_back("--filter=+ " + pattern + "/***");
    }
    words.emplace_back("--filter=- *");
  }
  words.emplace_back("dtool:./");
  words.push_back(destination + "/" + kPartial + "/");
  return program;
}

RsyncProgress ProgressReader::add(std::string_view piece) {
  // `\r       1234  45%    1.95kB/s    0:00:00 (xfr#2, to-chk=3/6)`: the brackets only when a file
  // has ended.
  line_ += piece;
  const std::size_t end = line_.rfind('%');
  const std::size_t begin = line_.rfind('\r', end);
  if (end != line_.npos && begin != line_.npos) {
    const auto bytes = leading_number<std::uint64_t>(line_.substr(begin + 1)).value_or(0);
    const auto percent = number_after<unsigned>(line_.substr(begin, end - begin), " ");
    progress_.sent.bytes = std::max(progress_.sent.bytes, bytes);
    progress_.fraction = std::max(progress_.fraction, std::min(percent, 100U) / 100.0);
  }
  const std::string ended = line_.substr(0, line_.rfind(')') + 1);
  if (ended.ends_with(')')) {
    const auto files = number_after<std::size_t>(ended, "(xfr#");
    const auto left = number_after<double>(ended, "-chk=");
    const std::size_t slash = ended.rfind('/');
    const double all = slash == ended.npos ? 0 : number_after<double>(ended.substr(slash), "/");
    progress_.sent.files = std::max(progress_.sent.files, files);
    if (all > 0)
      progress_.fraction = std::max(progress_.fraction, std::clamp(1 - left / all, 0.0, 1.0));
  }
  line_.erase(0, std::min(line_.rfind('\r'), line_.size()));
  return progress_;
}

std::string complaint(std::string_view err) {
  constexpr std::array kConsequences = {"rsync error: ", "connection unexpectedly closed",
                                        "Broken pipe", "Connection reset by peer"};
  std::string_view cause;
  bool is_cause_rsyncs = false;
  std::string_view last;
  while (!err.empty()) {
    std::string_view line = host::cut_line(err);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    last = line;
    bool is_consequence = false;
    for (const char* sign : kConsequences) {
      is_consequence = is_consequence || line.find(sign) != line.npos;
    }
    // rsync's first complaint is the cause of the others; what a shell prints comes before it.
    const bool is_rsyncs = line.starts_with("rsync: ") || line.starts_with("could not ") ||
                           line.starts_with("protocol version mismatch");
    if (is_consequence || is_cause_rsyncs || (!cause.empty() && !is_rsyncs)) continue;
    cause = line;
    is_cause_rsyncs = is_rsyncs;
  }
  std::string_view chosen = cause.empty() ? last : cause;
  for (const std::string_view prefix : {"rsync: ", "rsync error: "}) {
    if (chosen.starts_with(prefix)) chosen.remove_prefix(prefix.size());
  }
  return std::string(chosen);
}

}  // namespace dtool::tree_sync
