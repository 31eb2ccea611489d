// Each line is flushed at once: the console is usually a file that somebody follows.
#include "trainer/progress_log.h"

#include <fmt/format.h>

#include <cstdio>

namespace dtool::trainer {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

ProgressLog::ProgressLog(const std::filesystem::path& output_dir)
    : file_(output_dir / "metrics.jsonl") {}

void ProgressLog::start(std::uint64_t seed, int world_size, const std::string& resumed_from) {
  MetricsLine line = {{"event", "start"},
                      {"time", now()},
                      {"seed", seed},
                      {"world_size", std::int64_t{world_size}}};
  if (!resumed_from.empty()) line.emplace_back("resumed_from", resumed_from);
  file_.append(line);
}

void ProgressLog::append(const char* event, const Report& report) {
  MetricsLine line = {{"event", event},
                      {"time", now()},
                      {"epoch", report.epoch},
                      {"step", report.step},
                      {"loss", report.loss},
                      {"learning_rate", report.learning_rate},
                      {"samples_per_s", report.samples_per_second}};
  if (report.test_accuracy) line.emplace_back("test_accuracy", *report.test_accuracy);
  file_.append(line);
}

void ProgressLog::step(const Report& report) {
  print_line(fmt::format("epoch {}/{}  step {}  loss {:.4f}  lr {:g}  samples/s {:.0f}",
                         report.epoch, report.epochs, report.step, report.loss,
                         report.learning_rate, report.samples_per_second));
  append("step", report);
}

void ProgressLog::epoch(const Report& report) {
  std::string line =
      fmt::format("epoch {}/{} done  step {}  loss {:.4f}  samples/s {:.0f}", report.epoch,
                  report.epochs, report.step, report.loss, report.samples_per_second);
  if (report.test_accuracy) line += fmt::format("  test accuracy {:.4f}", *report.test_accuracy);
  print_line(line);
  append("epoch", report);
}

void ProgressLog::note(const std::string& text) {
  print_line(text);
}

void ProgressLog::finish(double test_accuracy) {
  print_line(fmt::format("test accuracy {:.4f}", test_accuracy));
}

}  // namespace dtool::trainer
