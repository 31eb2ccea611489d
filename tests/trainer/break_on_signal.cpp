// SPDX-License-Identifier: MIT
// Preloaded into workers by tests: ends the process in ways that a worker never would by itself.
// USR1: a library that gives up, exit code 3. USR2: an exception that nobody catches. And where
// DTOOL_TEST_ABORTS_AT_EXIT is the process's RANK, an abort after its work is done.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

void await_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  int signal = 0;
  sigwait(&signals, &signal);
  if (signal == SIGUSR2) throw std::runtime_error("nobody catches this");
  std::cerr << "a library is out of luck" << std::endl;
  _exit(3);
}

struct Breaker {
  Breaker() {
    if (std::getenv("RANK") == nullptr) return;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // threads that start later have it, too
    std::thread(await_signal).detach();
  }
  ~Breaker() {
    const char* rank = std::getenv("RANK");
    const char* aborting = std::getenv("DTOOL_TEST_ABORTS_AT_EXIT");
    if (rank == nullptr || aborting == nullptr || std::string(rank) != aborting) return;
    std::cerr << "broken at the very end" << std::endl;
    std::abort();
  }
};

Breaker breaker;

}  // namespace
