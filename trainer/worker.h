// SPDX-License-Identifier: MIT
// The program dtool-trainer-worker, without its main(), so that it is compiled together with the
// library.
#pragma once

namespace dtool::trainer {

/// One rank from its arguments to its end; returns the exit code. Everything that fails is told on
/// standard error.
int run_worker(int argc, char** argv);

}  // namespace dtool::trainer
