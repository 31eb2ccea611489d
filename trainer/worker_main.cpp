// SPDX-License-Identifier: MIT
// dtool-trainer-worker's main().
#include "trainer/worker.h"

int main(int argc, char** argv) {
  return dtool::trainer::run_worker(argc, argv);
}
