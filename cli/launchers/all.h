// Who makes each launcher: a line here and one in launcher.cpp are what a new one adds outside its
// own file.
#pragma once

#include <memory>

#include "cli/launchers/launcher.h"
#include "cli/launchers/scheduler/scheduler_text.h"

namespace dtool::cli {

/// dtool itself, over SSH: a screen session a machine, which the run's own supervision watches.
std::unique_ptr<Launcher> make_ssh_launcher();

/// Slurm: a job that sbatch takes on a login host. Schedulers share `request`, as their flags do.
std::unique_ptr<Launcher> make_slurm_launcher(std::shared_ptr<JobRequest> request);

/// Grid Engine: a job that qsub takes on a submit host.
std::unique_ptr<Launcher> make_gridengine_launcher(std::shared_ptr<JobRequest> request);

/// Open MPI's mpirun on machine 0, which reaches the other machines by its own ssh; sessions as
/// with ssh watch what it starts.
std::unique_ptr<Launcher> make_mpi_launcher();

}  // namespace dtool::cli
