// SPDX-License-Identifier: MIT
#include "cli/console.h"

#include <fmt/format.h>
#include <locale.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cwchar>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "killfiles/printable.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/interrupts.h"
#include "ssh/notice.h"

namespace dtool::cli {

namespace {

bool wants_color(Color color, int fd) {
  if (color != Color::automatic) return color == Color::always;
  const char* no_color =
      std::getenv("NO_COLOR");  // https://no-color.org: any value but the empty one
  const char* terminal = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return ::isatty(fd) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

/// How a mark begins that stands for a colour of dtool's own. No text from outside can hold it,
/// since it is another one in each process, and is never shown.
const std::string& mark() {
  static const std::string text = "\x1b" + ssh::random_hex(16) + ":";
  return text;
}

/// As in ESC [ NUMBER m.
char code_of(Style style) {
  constexpr std::string_view kCodes = "012rgybmc";
  return kCodes[static_cast<std::size_t>(style)];
}

std::string_view sequence_of(char code) {
  static const std::map<char, std::string_view> sequences = {
      {'0', "\x1b[0m"},  {'1', "\x1b[1m"},  {'2', "\x1b[2m"},  {'r', "\x1b[31m"}, {'g', "\x1b[32m"},
      {'y', "\x1b[33m"}, {'b', "\x1b[34m"}, {'m', "\x1b[35m"}, {'c', "\x1b[36m"}};
  return sequences.at(code);
}

std::string paint(Style style, std::string_view text) {
  if (style == Style::plain) return std::string(text);
  return fmt::format("{0}{1}{2}{0}{3}", mark(), code_of(style), text, code_of(Style::plain));
}

/// The gate: text between the marks goes through `clean`, and the marks become colours.
template <typename Clean>
std::string through_gate(std::string_view text, Clean clean) {
  std::string shown;
  for (;;) {
    const std::size_t at = text.find(mark());
    shown += clean(text.substr(0, at));
    if (at == text.npos) return shown;
    text.remove_prefix(at + mark().size());
    shown += sequence_of(text.front());
    text.remove_prefix(1);
  }
}

std::string gated(std::string_view text, Allowed kept = Allowed::lines) {
  return through_gate(text, [kept](std::string_view part) { return printable(part, kept); });
}

/// Below the beginning of what the line says. That of a row is its value, behind two blanks, unless
/// a word would not fit there.
std::size_t indent_of_sentence(std::string_view line, std::size_t columns) {
  const std::string text = without_controls(line);
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  for (const std::string_view mark : {"dtool: ", "hint: "})
    if (std::string_view(text).substr(begin).starts_with(mark)) return begin + mark.size();
  constexpr std::size_t kLongestName = 24;
  const std::size_t value = text.find_first_not_of(' ', text.find("  ", begin));
  if (value > kLongestName) return begin + 4;
  std::istringstream words(text.substr(value));
  for (std::string word; words >> word;)
    if (value + length(word) > columns) return begin + 4;
  return value;
}

/// As dtool's own sentences are shown on `fd`. A file, a pipe, or a terminal that does not tell its
/// width, gets them as they are.
std::string sentences(int fd, std::string_view text) {
  winsize size{};
  const std::string shown = gated(text);
  if (::isatty(fd) != 1 || ::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return shown;
  return wrapped(shown, size.ws_col, indent_of_sentence);
}

/// Whatever `fd` does, a terminal or pipe that another program made non-blocking included. Returns
/// the errno value that ended it, else 0.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// Output of hosts may be any bytes; JSON holds UTF-8 alone, and \u007f is how it writes DEL.
std::string as_json(const nlohmann::json& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string escaped;
  for (const char each : text) {
    if (each == '\x7f') {
      escaped += "\\u007f";
    } else {
      escaped += each;
    }
  }
  return printable(escaped, Allowed::lines);
}

void write_error(std::string_view bytes) {
  write_all(STDERR_FILENO, bytes);
}

}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool Console::has_one_place() const {
  struct stat out, err;
  return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 &&
         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

void Console::configure(const ConsoleOptions& options) {
  options_ = options;
  color_out_ = wants_color(options.color, STDOUT_FILENO);
  color_err_ = wants_color(options.color, STDERR_FILENO);
  out_is_terminal_ = ::isatty(STDOUT_FILENO) == 1;
  err_is_terminal_ = ::isatty(STDERR_FILENO) == 1;
}

void Console::write_answer(std::string_view bytes) {
  clear_live();
  if (const int error = write_all(STDOUT_FILENO, bytes); error != 0) throw OutputLost(error);
}

void Console::write(std::string_view lines) {
  write_answer(gated(lines));
}

void Console::pass_on(To to, std::string_view lines) {
  const Allowed kept = takes_color(to) ? Allowed::colored_lines : Allowed::bare_lines;
  const std::string text =
      is_terminal(to) ? gated(lines, kept) : through_gate(lines, std::identity());
  if (to == To::out) return write_answer(text);
  clear_live();
  write_error(text);
}

std::string Console::as_passed_on(To to, std::string_view label, std::string_view line) const {
  return std::string(label).append(is_terminal(to) ? as_drawn(line) : std::string(line));
}

void Console::steer(To to, OwnSequence sequence) {
  if (to == To::out) return write_answer(sequence.text());
  clear_live();
  write_error(sequence.text());
}

void Console::draw(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i > 0 ? "\r\n" : "") + gated(lines[i], Allowed::nothing) + "\x1b[K";
  write_answer(text + "\x1b[J");
}

void Console::say(std::string_view line) {
  write_answer(sentences(STDOUT_FILENO, line) + "\n");
}

void Console::document(const nlohmann::json& json, const LargeTexts& texts) {
  const std::string document = as_json(json, 2);
  std::string_view rest = document;
  while (const auto mark = texts.find_mark(rest)) {
    write_answer(rest.substr(0, mark->at));
    texts.read(mark->text, [this](std::string_view piece) {
      const std::string quoted = as_json(piece, -1);
      write_answer(std::string_view(quoted).substr(1, quoted.size() - 2));
    });
    rest.remove_prefix(mark->at + mark->size);
  }
  write_answer(std::string(rest) + "\n");
}

void Console::note(std::string_view line) {
  if (options_.quiet) return;
  clear_live();
  write_error(sentences(STDERR_FILENO, line) + "\n");
}

void Console::fail(std::string_view line, std::string_view hint) {
  clear_live();
  std::string text = fmt::format("{} {}\n", styled_error(Style::red, "dtool:"), line);
  if (!hint.empty()) text += fmt::format("{} {}\n", styled_error(Style::yellow, "hint:"), hint);
  write_error(sentences(STDERR_FILENO, text));
}

void Console::fail(const std::exception& error) {
  constexpr std::string_view kMark = "\nhint: ";
  std::string_view text = error.what();
  constexpr std::string_view kOfLibrary = "filesystem error: ";
  if (text.starts_with(kOfLibrary)) text.remove_prefix(kOfLibrary.size());
  const std::size_t at = std::min(text.find(kMark), text.size());
  fail(text.substr(0, at), text.substr(std::min(at + kMark.size(), text.size())));
}

void Console::complain(std::string_view lines) {
  clear_live();
  write_error(sentences(STDERR_FILENO, lines) + "\n");
}

void Console::progress(std::string_view line) {
  if (line.empty()) {
    live({});
  } else {
    live({std::string(line)});
  }
}

void Console::live(const std::vector<std::string>& rows) {
  if (!err_is_terminal_ || options_.quiet) return;
  clear_live();
  if (ssh::is_question_open()) return;
  const TerminalSize size = terminal_size(STDERR_FILENO);
  const std::size_t most = size.rows > 3 ? size.rows - 2 : 1;
  std::string text;
  for (std::size_t i = 0; i < rows.size() && i < most; ++i) {
    const bool is_last = i + 1 == most && rows.size() > most;
    const std::string row =
        is_last ? fmt::format("… and {} more", rows.size() - i) : without_controls(rows[i]);
    text += (i > 0 ? "\n" : "") + cut(row, size.columns - 1);
  }
  write_error(text);
  live_rows_ = std::min(rows.size(), most);
}

void Console::clear_live() {
  if (ssh::is_question_open()) live_rows_ = 0;  // the question has taken their place
  if (live_rows_ == 0) return;
  std::string text = "\r";
  if (live_rows_ > 1) text += fmt::format("\x1b[{}A", live_rows_ - 1);
  write_error(text + "\x1b[J");
  live_rows_ = 0;
}

std::optional<bool> Console::ask(std::string_view question) {
  if (::isatty(STDIN_FILENO) != 1) return std::nullopt;
  clear_live();
  const ssh::EndsAtOnce ends_at_once;
  write_error(sentences(STDERR_FILENO, fmt::format("{} [y/N] ", question)));
  std::string line;
  if (!std::getline(std::cin, line)) {
    write_error("\n");
    return false;
  }
  return line == "y" || line == "Y" || line == "yes" || line == "Yes";
}

std::string Console::styled(Style style, std::string_view text) const {
  return paint(color_out_ ? style : Style::plain, text);
}

std::string Console::styled_error(Style style, std::string_view text) const {
  return paint(color_err_ ? style : Style::plain, text);
}

namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

struct Character {
  std::size_t bytes;
  std::size_t columns;
};

/// The first of a text that is not empty. What is no UTF-8, or unknown, takes a column.
Character first_character(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) < 0x80) return {1, 1};
  // The user's own locale may not be one of UTF-8.
  static const locale_t kUtf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::size_t bytes = 1;
  while (bytes < text.size() && !begins_character(text[bytes])) ++bytes;
  if (kUtf8 == nullptr) return {bytes, 1};
  const locale_t former = ::uselocale(kUtf8);
  wchar_t wide = 0;
  std::mbstate_t state{};
  const bool is_whole = std::mbrtowc(&wide, text.data(), bytes, &state) == bytes;
  const int columns = is_whole ? ::wcwidth(wide) : 1;
  ::uselocale(former);
  return {bytes, columns < 0 ? 1 : static_cast<std::size_t>(columns)};
}

/// Where the escape sequence that begins at `at` has its last character (ECMA-48).
std::size_t end_of_escape(std::string_view text, std::size_t at) {
  const auto skip = [&text](std::size_t from, char least, char most) {
    while (from < text.size() && text[from] >= least && text[from] <= most) ++from;
    return from;
  };
  if (text.substr(at + 1).starts_with('[')) return skip(at + 2, ' ', '?');
  if (text.substr(at + 1).starts_with(']')) {  // a window's title, up to a bell
    const std::size_t end = text.find('\a', at);
    return end == text.npos ? text.size() : end;
  }
  return skip(at + 1, ' ', '/');
}

std::string wrapped_line(std::string_view line, std::size_t columns, std::size_t indent) {
  std::string shown;
  std::size_t used = 0;
  std::size_t blank = line.npos;  // the last one in `shown` where the line may break
  std::size_t behind_blank = 0;   // columns up to it
  while (!line.empty()) {
    const Character each =
        line[0] == '\x1b' ? Character{end_of_escape(line, 0) + 1, 0} : first_character(line);
    used += each.columns;
    if (line[0] == ' ' && used > indent) {
      blank = shown.size();
      behind_blank = used;
    } else if (used > columns && blank != line.npos) {
      shown.replace(blank, 1, "\n" + std::string(indent, ' '));
      used += indent - behind_blank;
      blank = line.npos;
    }
    shown += line.substr(0, each.bytes);
    line.remove_prefix(std::min(each.bytes, line.size()));
  }
  return shown;
}

}  // namespace

std::string as_drawn(std::string_view line) {
  const std::size_t end = line.find_last_not_of("\r\n") + 1;
  const std::string_view text = line.substr(0, end);
  return std::string(text.substr(text.rfind('\r') + 1)) + (line.ends_with('\n') ? "\n" : "");
}

std::size_t length(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character each = first_character(text);
    columns += each.columns;
    text.remove_prefix(each.bytes);
  }
  return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
  if (length(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t at = 0;
  for (std::size_t used = 0; at < text.size();) {
    const Character each = first_character(text.substr(at));
    used += each.columns;
    if (used >= columns) break;
    at += each.bytes;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string wrapped(std::string_view text, std::size_t columns, IndentOf indent_of) {
  std::string shown;
  for (;;) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    shown += wrapped_line(line, columns, indent_of(line, columns));
    if (end == text.npos) return shown;
    shown += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string without_controls(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if (each == '\x1b') {
      i = end_of_escape(text, i);
    } else if (each == '\t' || each == '\n') {
      clean += ' ';
    } else if (static_cast<unsigned char>(each) >= 0x20 && each != 0x7f) {
      clean += each;
    }
  }
  return printable(clean, Allowed::nothing);
}

std::string counted(std::size_t number, std::string_view noun) {
  const char* ending = number == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", number, noun, ending);
}

std::string duration_text(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (seconds < kMinute) return fmt::format("{}s", std::max<std::int64_t>(seconds, 0));
  if (seconds < kHour) return fmt::format("{}m {:02}s", seconds / kMinute, seconds % kMinute);
  if (seconds < kDay) return fmt::format("{}h {:02}m", seconds / kHour, seconds % kHour / kMinute);
  return fmt::format("{}d {:02}h", seconds / kDay, seconds % kDay / kHour);
}

}  // namespace dtool::cli
