// SPDX-License-Identifier: MIT
#include "sync/rsync.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "ssh/quote.h"
#include "sync/staging.h"

namespace dtool::tree_sync {
namespace {

constexpr std::size_t kMostNamed = 10;  // files that differ

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

/// $0 is the lock, $1 the fingerprint of the tree. rsync holds the lock and it ends with rsync,
/// however that ends.
constexpr std::string_view kTakeTurn =
    "exec 9<> \"$0\" && flock -w 600 9 || "
    "{ echo another dtool is sending its code there >&2; exit 1; }; "
    "[ \"$(cat <&9)\" = \"$1\" ] || "
    "{ echo another dtool is sending another tree there >&2; exit 1; }; "
    "shift; exec rsync \"$@\"";

/// Words of rsync's that have a known mend.
struct Mend {
  std::string_view words;
  std::string_view hint;
};
constexpr std::array kMends = {
    Mend{"protocol version mismatch",
         "the rsync there prints something of its own first; see what `type rsync` says there"},
    Mend{"another dtool is sending its code there", "try again when it has"},
    Mend{"another dtool is sending another tree there",
         "try again when it has, or give each a folder of its own with --code_path"},
    Mend{"(from .~tmp~/",
         "is another dtool sending its code there, by another host that shares the folder? try "
         "again when it has"},
    Mend{"No space left on device",
         "free some space there; if df -h shows enough, df -i shows that its inodes are used up"},
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

/// $0 is the file of names. rsync itself is given a word that needs no quoting.
constexpr std::string_view kOpenNames = "exec 3< \"$0\" && exec rsync \"$@\"";

/// Level 1: zstd keeps up with a 1 Gbit/s network, and zlib, all that rsync before 3.2 has, is not
/// too slow.
void compress(ssh::LocalProgram& program, Link link) {
  std::vector<std::string>& words = program.arguments;
  if (link == Link::network) words.insert(words.end(), {"-z", "--zl=1"});
}

}  // namespace

ssh::LocalProgram push_program(const Tree& tree, std::string_view folder, Link link,
                               const FolderLock& lock, Same same) {
  ssh::LocalProgram program;
  // The folder stands in the command line and not among rsync's arguments, because quote() is the
  // one way through every login shell, and rsync versions differ in theirs.
  program.arguments = {
      "rsync",
      "-e",
      std::string(ssh::kRemoteShell),
      // Without --norc a bash that sshd's shell becomes reads ~/.bashrc once more.
      fmt::format("--rsync-path=cd {} && exec bash --norc -c {} {} {}", ssh::quote_path(folder),
                  ssh::quote(kTakeTurn), ssh::quote(lock.file), ssh::quote(lock.tree)),
      "--files-from=-",
      "--from0",
      "--sparse",
      "--links",
      "--perms",
      "--chmod=ug-s,-t",  // host::kPermissions
      "--times",
      "--omit-dir-times",
      // An edit within the second of the last push must not be missed. rsync before 3.1.3 and
      // file systems without fractions compare contents instead: slower, never wrong.
      "--modify-window=-1",
      // An interrupted push leaves the old tree, not a mixture of two.
      "--delay-updates",
      // Without it one whose launcher's machine was switched off would hold the lock for hours.
      "--remote-option=--timeout=300",
      "--stats",
      "--info=progress2",
      "--no-human-readable",
      "--outbuf=N",
  };
  if (same == Same::content) program.arguments.emplace_back("--checksum");
  compress(program, link);
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

ssh::LocalProgram compare_program(const Tree& tree, std::string_view folder, Link link,
                                  std::string_view names) {
  ssh::LocalProgram program;
  program.arguments = {
      "rsync",
      "-e",
      std::string(ssh::kRemoteShell),
      fmt::format("--rsync-path=cd {} && exec bash --norc -c {} {}", ssh::quote_path(folder),
                  ssh::quote(kOpenNames), ssh::quote(names)),
      "--files-from=:/proc/self/fd/3",
      "--from0",
      "--dry-run",
      "--checksum",
      "--existing",
      "--links",
      "--out-format=%i %n",
      "--remote-option=--timeout=300",
      "--outbuf=N",
  };
  compress(program, link);
  program.arguments.push_back(tree.root.native() + "/");
  program.arguments.emplace_back("dtool:.");
  return program;
}

void Differences::add(const std::vector<std::string>& first, std::int64_t count) {
  if (count <= 0) return;
  count_ += static_cast<std::size_t>(count);
  for (const std::string& name : first)
    if (first_.size() < kMostNamed) first_.push_back(name);
}

void Differences::add(std::string_view piece) {
  constexpr std::size_t kFlags = 11;  // `<fcst......`, a blank, and the name
  constexpr std::size_t kLongestLine = 8192;
  for (const char each : piece) {
    if (each != '\n') {
      if (line_.size() < kLongestLine) line_ += each;
      continue;
    }
    const std::string line = std::exchange(line_, {});
    // A file or link that would be changed (`c`: other content), or put in the place of something
    // of another kind (`+`).
    const bool differs = line.size() > kFlags + 1 && (line[0] == '<' || line[0] == 'c') &&
                         (line[2] == 'c' || line[2] == '+');
    if (!differs) continue;
    ++count_;
    if (first_.size() < kMostNamed) first_.push_back(line.substr(kFlags + 1));
  }
}

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
      words.push_back("--filter=+ " + pattern + "/***");  // if the pattern names a folder, its
                                                          // whole content
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
