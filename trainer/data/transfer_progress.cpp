// SPDX-License-Identifier: MIT
// The bar and the lines have the same content.
#include "trainer/data/transfer_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtool::trainer {
namespace {

constexpr auto kBetweenLines = std::chrono::seconds(5);
constexpr int kBarWidth = 20;

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

std::string transfer_text(const TransferState& state, TransferBar bar) {
  std::string text = state.name;
  if (state.total && *state.total > 0) {
    const double part =
        std::clamp(static_cast<double>(state.done) / static_cast<double>(*state.total), 0., 1.);
    if (bar == TransferBar::yes) {
      const auto full = static_cast<int>(part * kBarWidth);
      text += fmt::format("  [{}{}]", std::string(full, '#'), std::string(kBarWidth - full, ' '));
    }
    text += fmt::format("  {:.0f} % of {}", part * 100, human_bytes(*state.total));
  } else {
    text += "  " + human_bytes(state.done);
  }
  const double seconds = state.passed.count();
  const double rate =
      seconds > 0 ? static_cast<double>(state.done - state.begun_with) / seconds : 0;
  return text + fmt::format("  {}/s", human_bytes(static_cast<std::int64_t>(std::max(rate, 0.))));
}

void TransferProgress::begin(const std::string& name, std::int64_t done) {
  name_ = name;
  begun_with_ = done;
  begin_ = shown_ = Clock::now();
}

void TransferProgress::update(std::int64_t done, std::optional<std::int64_t> total) {
  const auto now = Clock::now();
  const TransferState state{name_, begun_with_, done, total, now - begin_};
  console_.draw([&](int columns) {
    return (prefix_ + transfer_text(state, TransferBar::yes))
        .substr(0, static_cast<std::size_t>(columns));
  });
  if (console_.has_bar() || now - shown_ < kBetweenLines) return;
  shown_ = now;
  say(transfer_text(state, TransferBar::no));
}

void TransferProgress::finish(std::int64_t size, const std::string& source) {
  say(fmt::format("{}: {} from {} in {:.1f} s", name_, human_bytes(size), source,
                  std::chrono::duration<double>(Clock::now() - begin_).count()));
}

void TransferProgress::say(const std::string& text) {
  console_.line(prefix_ + text);
}

}  // namespace dtool::trainer
