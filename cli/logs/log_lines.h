// SPDX-License-Identifier: MIT
// Merges the logs of several machines into one text: whole lines, each with its machine. With
// Fold::yes, lines that machines share are shown once. `dtool logs` shows the result.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dtool::cli {

enum class Fold { no, yes };

/// Takes bytes as they come, and shows text as soon as possible. Memory is bounded: a line beyond 1
/// MiB is shown in pieces, and when the lines that wait for equal lines of other machines fill
/// `most_waiting` bytes, the oldest are shown by themselves.
class LogLines {
 public:
  static constexpr std::size_t kMostWaiting = 64 << 20;

  LogLines(std::size_t machines, Fold fold, std::size_t most_waiting = kMostWaiting)
      : fold_(fold),
        most_waiting_(most_waiting),
        machines_(machines),
        taking_part_(machines),
        going_on_(machines) {}
  virtual ~LogLines() = default;

  /// Adds bytes of a machine's log.
  void add(std::size_t machine, std::string_view bytes);
  /// The next bytes belong to another line.
  void break_line(std::size_t machine);
  /// Shows the machine's lines that have waited since the previous call. Call it once per pause for
  /// each machine whose log continues. Lines of machines whose logs have ended are shown with them,
  /// once per pause.
  void show_due(std::size_t machine);
  /// Shows how far a line has come that a program redraws with carriage returns, a progress bar, at
  /// each fifth call for its machine: it may have no end for hours. Not with Fold::yes.
  void show_redrawn(std::size_t machine);
  /// The machine's log has ended.
  void end(std::size_t machine);
  /// Nothing more will be known of the machine: lines can be equal without it.
  void leave_out(std::size_t machine);
  /// Shows all lines that wait for equal ones.
  void flush();

 protected:
  /// Shows a line (with its end) of these machines. Called in the order of the text.
  virtual void show(const std::vector<std::size_t>& machines, std::string_view line) = 0;
  /// The part of a machine's line that other machines can share, with Fold::yes.
  virtual std::string_view shared_part(std::size_t /*machine*/, std::string_view line) const {
    return line;
  }

 private:
  /// The waiting lines, and how often each machine has each.
  using Waiting = std::unordered_map<std::string, std::map<std::size_t, std::size_t>>;
  struct Machine {
    std::string unfinished;
    std::deque<Waiting::value_type*> queue;
    int calls = 0;        ///< the calls of show_redrawn() since a line was shown
    std::size_t due = 0;  ///< lines at the front that were waiting when a pause began
    bool has_ended = false;
    bool is_left_out = false;
  };

  void take(std::size_t machine, std::string_view line);
  void advance(std::size_t machine);
  void settle();
  void show_alike(const Waiting::value_type& line);
  void show_settled();
  bool is_settled(const Waiting::value_type& line) const;
  void drop_front(std::size_t machine);
  void show_front(std::size_t machine);

  Fold fold_;
  std::size_t most_waiting_;
  std::vector<Machine> machines_;
  std::size_t taking_part_;  ///< not left out
  std::size_t going_on_;     ///< those among them whose log has not ended
  std::size_t pauses_ = 0;  ///< calls of show_due() since the ended machines' lines were last shown
  Waiting waiting_;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace dtool::cli
