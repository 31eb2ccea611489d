// SPDX-License-Identifier: MIT
// Gives every machine its data files before training.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "trainer/data/data_set.h"
#include "trainer/data/data_settings.h"
#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// Fills `settings.paths`. One rank of each machine downloads or copies missing files while the
/// machine's other ranks wait. Then every rank waits for the slowest machine, however long that
/// takes. So this comes before the first exchange between ranks, which has a time limit. Throws
/// UsageError as `provide_files` does, and CollectiveFailed if the run's store is gone.
void provide_data(FileSettings& settings, const Meeting& meeting);

// Gives each rank the data set, of which a machine needs one copy only.

/// Loads the data into memory that the ranks of this machine share, or where they cannot share it
/// into each rank's own, and copies it to a GPU. One rank of each machine loads, and every rank
/// waits for the slowest, however long that takes: all of them must call it, once. Throws as
/// `load` does, on every rank of the machine, and CollectiveFailed if the run's store is gone.
DataSets load_on_machine(const Loader& load, const Meeting& meeting, at::Device device);

}  // namespace dtool::trainer
