// SPDX-License-Identifier: MIT
// Writes the whole text at once, so that lines of several processes do not mix.
#include "trainer/launch/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include "killfiles/printable.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace dtool::trainer {
namespace {

bool write_whole(int descriptor, const std::string& text) {
  return write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool write_to_file(const std::string& text) {
  if (!has_file_for_last_words()) return false;
  const int file =
      open(std::getenv(kLastWordsVariable), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool is_written = write_whole(file, text);
  close(file);
  return is_written;
}

}  // namespace

bool has_file_for_last_words() {
  return std::getenv(kLastWordsVariable) != nullptr;
}

void say_last_words(const std::string& message, const std::string& hint) {
  // A second caller waits, since it may end the process; but not for ever, since stderr may not be
  // read any more.
  static std::timed_mutex saying;
  static bool said = false;
  std::string text = message + "\n";
  if (!hint.empty()) text += "hint: " + hint + "\n";
  text =
      killfiles::printable(text, killfiles::Allowed::lines);  // parts come from files and programs
  const std::unique_lock lock(saying, std::chrono::seconds(2));
  if (!lock || std::exchange(said, true)) return;
  if (!write_to_file(text)) write_whole(STDERR_FILENO, "dtool-trainer: " + text);
}

}  // namespace dtool::trainer
