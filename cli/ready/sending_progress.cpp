// SPDX-License-Identifier: MIT
#include "cli/ready/sending_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "cli/host_output.h"
#include "cli/terminal_text.h"

namespace dtool::cli {
namespace {

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

}  // namespace

void SendingProgress::sent(std::size_t host, const ssh::Transferred& what, Clock::time_point now) {
  if (!begun_) begun_ = now;
  hosts_.at(host).sent = what;
}

void SendingProgress::done(std::size_t host) {
  hosts_.at(host).is_done = true;
}

SendingProgress::Sums SendingProgress::sums() const {
  auto [done, sent, all] = Sums();
  for (const Host& host : hosts_) {
    if (host.is_done) ++done;
    sent += host.sent.bytes;
    const auto expected = host.is_done ? host.sent.bytes : host.sent.all;
    all = all && expected ? std::optional(*all + *expected) : std::nullopt;
  }
  return {done, sent, all};
}

std::string SendingProgress::amounts() const {
  const auto [done, sent, all] = sums();
  const std::string line =
      fmt::format("{}: {} of {} hosts, {:.1f}", doing_, done, hosts_.size(), megabytes(sent));
  return line + (all && *all > 0
                     ? fmt::format(" of {:.1f} MB ({} %)", megabytes(*all), 100 * sent / *all)
                     : " MB");
}

std::string SendingProgress::line(Clock::time_point now) const {
  const auto [done, sent, all] = sums();
  std::string line = amounts();
  const std::chrono::duration<double> seconds = now - begun_.value_or(now);
  if (seconds.count() < 1) return line;
  line += fmt::format(", {:.1f} MB/s", megabytes(sent) / seconds.count());
  if (all && sent > 0 && *all > sent) {
    const double rest = static_cast<double>(*all - sent) / static_cast<double>(sent);
    line += fmt::format(
        ", {} left", duration_text(static_cast<std::int64_t>(std::ceil(rest * seconds.count()))));
  }
  return line;
}

void SendingReporter::on_progress(std::size_t host, const ssh::Transferred& sent) {
  // A thousand hosts tell of twenty thousand pieces, and the line is about all of them.
  constexpr std::chrono::milliseconds kShowEvery{50};
  constexpr std::uint64_t kMuch = 20'000'000;
  if (!large_.empty() && std::max(sent.bytes, sent.all.value_or(0)) > kMuch)
    console_.note(std::exchange(large_, {}));
  const auto now = SendingProgress::Clock::now();
  sending_.sent(host, sent, now);
  if (now - shown_ < kShowEvery) return;
  shown_ = now;
  console_.progress(sending_.line(now));
}

void SendingReporter::on_result(std::size_t host, const ssh::HostResult& /*result*/) {
  sending_.done(host);
  console_.progress(sending_.line(SendingProgress::Clock::now()));
}

void SendingReporter::on_silence(const std::vector<std::size_t>& waiting) {
  console_.progress(sending_.amounts() + waiting_for(hosts_, waiting));
}

void SendingReporter::on_interrupt(const std::vector<std::size_t>& /*running*/) {
  console_.note(on_interrupt_);
}

}  // namespace dtool::cli
