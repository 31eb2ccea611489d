// SPDX-License-Identifier: MIT
// The functions that make the launchers. A new launcher adds a line here and one in launcher.cpp.
#pragma once

#include <memory>

#include "cli/launchers/launcher.h"
#include "cli/launchers/scheduler.h"

namespace dtool::cli {

/// dtool itself, over SSH: a screen session per machine, watched by the run's own supervision.
std::unique_ptr<Launcher> make_ssh_launcher();

/// Slurm: a job that sbatch accepts on a login host. Schedulers share `request` because they share
/// flags.
std::unique_ptr<Launcher> make_slurm_launcher(std::shared_ptr<JobRequest> request);

/// Grid Engine: a job that qsub accepts on a submit host.
std::unique_ptr<Launcher> make_gridengine_launcher(std::shared_ptr<JobRequest> request);

/// Open MPI's mpirun on machine 0, which reaches the other machines by its own ssh. Sessions as
/// with ssh watch its processes.
std::unique_ptr<Launcher> make_mpi_launcher();

}  // namespace dtool::cli
