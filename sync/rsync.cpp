#include "sync/rsync.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "ssh/quote.h"

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

/// The line of rsync's complaints that names a cause: its last lines only say that it gave up.
std::string complaint(std::string_view err) {
  constexpr std::array kConsequences = {"rsync error: ", "connection unexpectedly closed",
                                        "Broken pipe", "Connection reset by peer"};
  std::string_view cause;
  bool is_cause_rsyncs = false;
  std::string_view last;
  while (!err.empty()) {
    std::string_view line = err.substr(0, err.find('\n'));
    err.remove_prefix(std::min(line.size() + 1, err.size()));
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

/// Words of rsync's that have a known mend.
struct Mend {
  std::string_view words;
  std::string_view hint;
};
constexpr std::array kMends = {
    Mend{"protocol version mismatch",
         "the login shell there prints something even without a terminal; let ~/.bashrc and its "
         "like be silent then"},
    Mend{"No space left on device", "free some space there"},
    Mend{"Disk quota exceeded", "free some space there"},
    Mend{"could not make way for",
         "something that dtool did not send is in the way there; move it"},
    Mend{"[sender] link_stat", "the tree changed while it was being sent; do it again"},
    Mend{"[sender] send_files", "the tree changed while it was being sent; do it again"},
    Mend{"vanished", "the tree changed while it was being sent; do it again"},
    Mend{"Permission denied", "the user there must be able to write into the folder"},
    Mend{"Read-only file system", "name a folder on a file system that can be written"},
};

std::string hint_for(int exit_code, std::string_view sentence) {
  if (exit_code == 127) return "apt-get install rsync";
  for (const Mend& mend : kMends) {
    if (sentence.find(mend.words) != sentence.npos) return std::string(mend.hint);
  }
  // The codes of broken sockets, streams and pipes.
  const bool broke_off = exit_code == 10 || exit_code == 12 || exit_code == 13 || exit_code == 30;
  return broke_off ? "the transfer broke off; the next push takes it up again" : "";
}

}  // namespace

ssh::LocalProgram push_program(const Tree& tree, std::string_view folder, Link link) {
  ssh::LocalProgram program;
  // The folder stands in the command line and not among rsync's arguments, because quote() is the
  // one way through every login shell, and rsync versions differ in theirs.
  program.arguments = {
      "rsync",
      "-e",
      std::string(ssh::kRemoteShell),
      fmt::format("--rsync-path=cd {} && exec rsync", ssh::quote_path(folder)),
      "--files-from=-",
      "--from0",
      "--links",
      "--perms",
      "--times",
      "--omit-dir-times",
      // An edit within the second of the last push must not be missed. rsync before 3.1.3 and
      // file systems without fractions compare contents instead: slower, never wrong.
      "--modify-window=-1",
      // An interrupted push leaves the old tree, not a mixture of two.
      "--delay-updates",
      "--stats",
      "--info=progress2",
      "--no-human-readable",
      "--outbuf=N",
  };
  // Level 1: zstd keeps up with a 1 Gbit/s network, and zlib, all that rsync before 3.2 has,
  // is not too slow.
  if (link == Link::network) program.arguments.insert(program.arguments.end(), {"-z", "--zl=1"});
  if (link == Link::local) program.arguments.emplace_back("--whole-file");
  program.arguments.push_back(tree.root.native() + "/");
  program.arguments.emplace_back("dtool:.");
  for (const std::string& file : tree.files) {
    program.input += '/';  // rsync takes it off again; without it `#name` would be a comment
    program.input += file;
    program.input += '\0';
  }
  return program;
}

Sent read_sent(std::string_view out) {
  Sent sent;
  sent.files = number_after<std::size_t>(out, "\nNumber of regular files transferred:");
  sent.bytes = number_after<std::uint64_t>(out, "\nTotal transferred file size:");
  return sent;
}

std::uint64_t SentSoFar::add(std::string_view piece) {
  // `\r       1234  45%    1.95kB/s    0:00:00 (xfr#2, to-chk=3/6)`
  line_ += piece;
  const std::size_t end = line_.rfind('%');
  const std::size_t begin = line_.rfind('\r', end);
  if (end != line_.npos && begin != line_.npos) {
    bytes_ = std::max(bytes_, leading_number<std::uint64_t>(line_.substr(begin + 1)).value_or(0));
  }
  line_.erase(0, std::min(line_.rfind('\r'), line_.size()));
  return bytes_;
}

void explain(ssh::HostResult& result) {
  if (result.failure == ssh::Failure::local_program) {
    result.hint = "apt-get install rsync";
    return;
  }
  if (result.failure != ssh::Failure::none || result.exit_code == 0) return;
  const std::string reason = complaint(result.err);
  result.error = fmt::format("rsync failed with exit code {}{}{}", result.exit_code,
                             reason.empty() ? "" : ": ", reason);
  result.hint = hint_for(result.exit_code, reason);
}

}  // namespace dtool::tree_sync
