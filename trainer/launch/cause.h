// Why a run failed: one line, made where the failure was seen and printed, word for word, by every
// machine's dtool-trainer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/launch/last_words.h"

namespace dtool::trainer {

struct Cause {
  enum class Certainty {
    suspected,  ///< a rank noticed that another one is gone; a better reason may be on its way
    certain,    ///< seen on the machine where it happened
  };
  Certainty certainty = Certainty::certain;
  int exit_code = kFailed;  ///< of every machine's dtool-trainer: kFailed or kMistake
  enum class WorkersEnd {
    at_once,
    with_a_checkpoint,  ///< a machine was terminated, and all are well
  };
  WorkersEnd workers_end = WorkersEnd::at_once;
  std::string text;  ///< one line
  std::string hint;  ///< how to mend a mistake, or empty

  bool operator==(const Cause&) const = default;
};

/// A worker that did not end well.
struct WorkerEnd {
  int rank = 0;
  int status = 0;              ///< as waitpid gives it
  std::string words;           ///< its last words, or empty
  std::string hint;            ///< of its last words, or empty
  std::string last_error;      ///< the last line that it wrote on standard error, or empty
  bool out_of_memory = false;  ///< the kernel ran out of memory about when it was killed
};

/// `machine 1 (red02)`.
std::string machine_name(int machine, const std::string& host);

/// The cause that a worker's end is.
Cause cause_of(const WorkerEnd& end, int machine, const std::string& host);

/// `machine 1 (rank 2, 3), machine 2 (rank 4, 5)`, the first eight of them: machines have equally
/// many ranks, in order.
std::string name_missing_ranks(const std::vector<int>& ranks, int local_world_size);

/// A cause as one line without its end, and back; absent when `line` is none.
std::string write_cause(const Cause& cause);
std::optional<Cause> read_cause(std::string_view line);

/// What dtool-trainer prints at the very end. A run of one machine has its hint on a line of its
/// own; where several print the same, all is on one line.
std::string last_line(const Cause& cause, int machines);

}  // namespace dtool::trainer
