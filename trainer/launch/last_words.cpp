// One write of the whole text, so that lines of several processes do not mix.
#include "trainer/launch/last_words.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace dtool::trainer {

void say_last_words(const std::string& message, const std::string& hint) {
  // Who comes second waits, since it may end the process; not for ever, since whoever reads stderr
  // may have stopped.
  static std::timed_mutex saying;
  static bool said = false;
  const char* pipe = std::getenv(kLastWordsVariable);
  std::string text = pipe == nullptr ? "dtool-trainer: " : "";
  text += message + "\n";
  if (!hint.empty()) text += "hint: " + hint + "\n";
  const std::unique_lock lock(saying, std::chrono::seconds(2));
  if (!lock || std::exchange(said, true)) return;
  const int descriptor = pipe == nullptr ? STDERR_FILENO : std::atoi(pipe);
  // A process that is about to end has nobody to tell of a failing write.
  [[maybe_unused]] const auto written = write(descriptor, text.data(), text.size());
}

}  // namespace dtool::trainer
