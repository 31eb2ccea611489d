// SPDX-License-Identifier: MIT
// The functions that make the engines. A new engine adds a line here and one in engine.cpp.
#pragma once

#include <memory>

#include "cli/engines/engine.h"
#include "cli/engines/scheduler.h"

namespace dtool::cli {

/// dtool itself, over SSH: a screen session per machine, watched by the run's own supervision.
std::unique_ptr<Engine> make_ssh_engine();

/// Slurm: a job that sbatch accepts on a login host. Schedulers share `request` because they share
/// flags.
std::unique_ptr<Engine> make_slurm_engine(std::shared_ptr<JobRequest> request);

/// Grid Engine: a job that qsub accepts on a submit host.
std::unique_ptr<Engine> make_gridengine_engine(std::shared_ptr<JobRequest> request);

/// Open MPI's mpirun on machine 0, which reaches the other machines by its own ssh. Sessions as
/// with ssh watch its processes.
std::unique_ptr<Engine> make_mpi_engine();

}  // namespace dtool::cli
