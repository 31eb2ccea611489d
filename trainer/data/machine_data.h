// SPDX-License-Identifier: MIT
// Gives each rank the data set, of which a machine needs one copy only.
#pragma once

#include <c10/core/Device.h>

#include "trainer/data/data_set.h"
#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// Loads the data into memory that the ranks of this machine share, or where they cannot share it
/// into each rank's own, and copies it to a GPU. One rank of each machine loads, and every rank
/// waits for the slowest, however long that takes: all of them must call it, once. Throws as
/// `load_data` does, on every rank of the machine, and CollectiveFailed if the run's store is gone.
DataSets load_on_machine(const DataSettings& settings, const Meeting& meeting, at::Device device);

}  // namespace dtool::trainer
