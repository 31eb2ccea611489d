// The moment before training at which every machine gets its files.
#pragma once

#include "trainer/ranks/rendezvous.h"
#include "trainer/settings/file_settings.h"

namespace dtool::trainer {

/// Fills `settings.paths`: one rank of each machine fetches or copies what is not there while its
/// others wait, then every rank waits for the slowest machine, however long that takes. So it comes
/// before the first exchange between ranks, which has a time limit. Throws UsageError as
/// `provide_files` does, and CollectiveFailed when the run's store is gone.
void provide_data(FileSettings& settings, const Meeting& meeting);

}  // namespace dtool::trainer
