// One write of the whole text, so that lines of several processes do not mix.
#include "trainer/launch/last_words.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace dtool::trainer {

void say_last_words(const std::string& message, const std::string& hint) {
  static std::atomic_flag said;
  if (said.test_and_set()) return;
  const char* pipe = std::getenv(kLastWordsVariable);
  std::string text = pipe == nullptr ? "dtool-trainer: " : "";
  text += message + "\n";
  if (!hint.empty()) text += "hint: " + hint + "\n";
  const int descriptor = pipe == nullptr ? STDERR_FILENO : std::atoi(pipe);
  // A process that is about to end has nobody to tell of a failing write.
  [[maybe_unused]] const auto written = write(descriptor, text.data(), text.size());
}

}  // namespace dtool::trainer
