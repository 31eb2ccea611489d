// The keys in the store: `asked/<signal>` counts what ranks were asked, `fulfilled` the checkpoints
// that rank 0 has written for it.
#include "trainer/ranks/request_exchange.h"

#include <fmt/format.h>
#include <signal.h>

#include "trainer/launch/requests.h"

namespace dtool::trainer {
namespace {

constexpr std::array<int, 2> kSignals = {SIGUSR1, SIGTERM};
constexpr const char* kFulfilled = "fulfilled";

/// A launcher signals all ranks at once; what they tell of it comes when rank 0 has long done it.
constexpr auto kSameRequest = std::chrono::seconds(4);

std::string asked(int signal) {
  return fmt::format("asked/{}", signal);
}

}  // namespace

void RequestExchange::exchange(c10d::Store& store) {
  if (rank_ == 0) {
    hear(store);
  } else {
    tell(store);
  }
}

void RequestExchange::tell(c10d::Store& store) {
  if (const int signal = take_request()) {
    fulfilled_ = store.add(kFulfilled, 0);
    store.add(asked(signal), 1);
    has_asked_to_end_ = has_asked_to_end_ || signal == SIGTERM;
  }
  if (has_asked_to_end_ && store.add(kFulfilled, 0) > fulfilled_) end_if_terminated();
}

void RequestExchange::hear(c10d::Store& store) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    const auto count = store.add(asked(kSignals[i]), 0);
    const bool is_new = count > heard_[i];
    heard_[i] = count;
    if (!is_new) continue;
    if (std::chrono::steady_clock::now() - last_fulfilled() < kSameRequest) {
      store.add(kFulfilled, 1);
    } else {
      pass_request(kSignals[i]);
    }
  }
  const auto fulfilled = requests_fulfilled();
  if (fulfilled > fulfilled_) store.add(kFulfilled, fulfilled - fulfilled_);
  fulfilled_ = fulfilled;
}

}  // namespace dtool::trainer
