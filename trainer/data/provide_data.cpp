// SPDX-License-Identifier: MIT
// The ranks meet again in the run's store. While they wait, RequestExchange watches for failures: a
// rank that fails or is killed ends the wait for all.
#include "trainer/data/provide_data.h"

#include <fmt/format.h>

#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// The last one to come opens the door for all.
void wait_for_all_ranks(const Meeting& meeting, const std::string& what) {
  if (meeting.place.world_size == 1) return;
  const auto everyone = static_cast<std::int64_t>(meeting.members.size());
  constexpr auto kForAsLongAsItTakes = std::chrono::hours(24 * 365);
  collectively([&] {
    if (meeting.store->add(what + "/ranks", 1) == everyone)
      meeting.store->set(what + "/ready", std::vector<std::uint8_t>{1});
    meeting.store->wait({what + "/ready"}, kForAsLongAsItTakes);
  });
}

void provide_data(FileSettings& settings, const Meeting& meeting) {
  if (settings.files.empty()) return;
  const bool alone = count_machines(meeting.members) == 1;
  TransferProgress progress(alone ? "" : fmt::format("{}: ", meeting.me().host));
  const Waits waits = meeting.place.local_rank == 0 ? Waits::told : Waits::silent;
  settings.paths =
      provide_files(settings.files, settings.place, process_environment, waits, progress);
  wait_for_all_ranks(meeting, "files");
}

}  // namespace dtool::trainer
