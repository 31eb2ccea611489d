#include "cli/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

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

std::string paint(Style style, std::string_view text) {
  switch (style) {
    case Style::plain:
      return std::string(text);
    case Style::bold:
      return fmt::format("\x1b[1m{}\x1b[0m", text);
    case Style::dim:
      return fmt::format("\x1b[2m{}\x1b[0m", text);
    case Style::red:
      return fmt::format("\x1b[31m{}\x1b[0m", text);
    case Style::green:
      return fmt::format("\x1b[32m{}\x1b[0m", text);
    case Style::yellow:
      return fmt::format("\x1b[33m{}\x1b[0m", text);
    case Style::blue:
      return fmt::format("\x1b[34m{}\x1b[0m", text);
    case Style::magenta:
      return fmt::format("\x1b[35m{}\x1b[0m", text);
    case Style::cyan:
      return fmt::format("\x1b[36m{}\x1b[0m", text);
  }
  return std::string(text);
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

void write_error(std::string_view bytes) {
  write_all(STDERR_FILENO, bytes);
}

}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void Console::configure(const ConsoleOptions& options) {
  options_ = options;
  color_out_ = wants_color(options.color, STDOUT_FILENO);
  color_err_ = wants_color(options.color, STDERR_FILENO);
  err_is_terminal_ = ::isatty(STDERR_FILENO) == 1;
}

void Console::write(std::string_view bytes) {
  clear_live();
  if (const int error = write_all(STDOUT_FILENO, bytes); error != 0) throw OutputLost(error);
}

void Console::say(std::string_view line) {
  write(fmt::format("{}\n", line));
}

void Console::document(const nlohmann::json& json) {
  // Output of hosts may be any bytes; JSON holds UTF-8 alone.
  write(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void Console::note(std::string_view line) {
  if (options_.quiet) return;
  clear_live();
  write_error(fmt::format("{}\n", line));
}

void Console::fail(std::string_view line, std::string_view hint) {
  clear_live();
  std::string text = fmt::format("{} {}\n", styled_error(Style::red, "dtool:"), line);
  if (!hint.empty()) text += fmt::format("{} {}\n", styled_error(Style::yellow, "hint:"), hint);
  write_error(text);
}

void Console::complain(std::string_view lines) {
  clear_live();
  write_error(fmt::format("{}\n", lines));
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
  const TerminalSize size = terminal_size(STDERR_FILENO);
  const std::size_t most = size.rows > 3 ? size.rows - 2 : 1;
  std::string text;
  for (std::size_t i = 0; i < rows.size() && i < most; ++i) {
    const bool is_last = i + 1 == most && rows.size() > most;
    const std::string row = is_last ? fmt::format("… and {} more", rows.size() - i) : rows[i];
    text += (i > 0 ? "\n" : "") + row.substr(0, size.columns - 1);
  }
  write_error(text);
  live_rows_ = std::min(rows.size(), most);
}

void Console::clear_live() {
  if (live_rows_ == 0) return;
  std::string text = "\r";
  if (live_rows_ > 1) text += fmt::format("\x1b[{}A", live_rows_ - 1);
  write_error(text + "\x1b[J");
  live_rows_ = 0;
}

std::optional<bool> Console::ask(std::string_view question) {
  if (::isatty(STDIN_FILENO) != 1) return std::nullopt;
  clear_live();
  write_error(fmt::format("{} [y/N] ", question));
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

}  // namespace dtool::cli
