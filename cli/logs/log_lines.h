// Logs of several machines as one text: whole lines, each behind its machine, and with Fold::yes
// what machines say alike only once. `dtool logs` shows what this returns.
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

/// Bytes go in as they come, text comes out as it can be shown. Memory is bounded: a line beyond
/// 1 MiB is shown in pieces, and of lines that wait for the other machines' like ones the oldest
/// are shown by themselves when they fill `most_waiting` bytes.
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

  /// More of a machine's log.
  void add(std::size_t machine, std::string_view bytes);
  /// What follows belongs to another line.
  void break_line(std::size_t machine);
  /// Shows the machine's lines that have waited since the call before, to be made once a pause for
  /// each machine that goes on. Once a pause the lines of those that have ended are shown so, too.
  void show_due(std::size_t machine);
  /// The machine's log has ended.
  void end(std::size_t machine);
  /// Nothing more is known of the machine: lines are alike without it.
  void leave_out(std::size_t machine);
  /// Shows all that waits for like lines.
  void flush();

 protected:
  /// A line with its end, of these machines; in the order in which they are to be shown.
  virtual void show(const std::vector<std::size_t>& machines, std::string_view line) = 0;

 private:
  /// Which lines wait, and how many of each machine's.
  using Waiting = std::unordered_map<std::string, std::map<std::size_t, std::size_t>>;
  struct Machine {
    std::string unfinished;
    std::deque<Waiting::value_type*> queue;
    std::size_t due = 0;  ///< lines at the front that waited when a pause began
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
  std::size_t going_on_;     ///< of those, machines whose log has not ended
  std::size_t pauses_ = 0;   ///< calls of show_due since the ended machines' lines fell due
  Waiting waiting_;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace dtool::cli
