// SPDX-License-Identifier: MIT
// The bar and the lines have the same content.
#include "trainer/data/transfer_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtool::trainer {
namespace {

constexpr auto kBetweenLines = std::chrono::seconds(5);
constexpr int kBarWidth = 20;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::string human_bytes(std::int64_t bytes) {
  constexpr const char* units[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit < 3) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

void TransferProgress::begin(const std::string& name, std::int64_t done) {
  name_ = name;
  begun_with_ = done;
  begin_ = shown_ = Clock::now();
}

void TransferProgress::update(std::int64_t done, std::optional<std::int64_t> total) {
  console_.draw([&](int columns) {
    return (prefix_ + status(done, total)).substr(0, static_cast<std::size_t>(columns));
  });
  const auto now = Clock::now();
  if (console_.has_bar() || now - shown_ < kBetweenLines) return;
  shown_ = now;
  say(status(done, total));
}

std::string TransferProgress::status(std::int64_t done, std::optional<std::int64_t> total) const {
  const double passed = seconds(Clock::now() - begin_);
  const double rate = passed > 0 ? static_cast<double>(done - begun_with_) / passed : 0;
  std::string text = name_;
  if (total && *total > 0) {
    const double part = std::clamp(static_cast<double>(done) / static_cast<double>(*total), 0., 1.);
    if (console_.has_bar()) {
      const auto full = static_cast<int>(part * kBarWidth);
      text += fmt::format("  [{}{}]", std::string(full, '#'), std::string(kBarWidth - full, ' '));
    }
    text += fmt::format("  {:.0f} % of {}", part * 100, human_bytes(*total));
  } else {
    text += "  " + human_bytes(done);
  }
  return text + fmt::format("  {}/s", human_bytes(static_cast<std::int64_t>(std::max(rate, 0.))));
}

void TransferProgress::finish(std::int64_t size, const std::string& source) {
  say(fmt::format("{}: {} from {} in {:.1f} s", name_, human_bytes(size), source,
                  seconds(Clock::now() - begin_)));
}

void TransferProgress::say(const std::string& text) {
  console_.line(prefix_ + text);
}

}  // namespace dtool::trainer
