// SPDX-License-Identifier: MIT
// std::terminate calls the handler that is set here.
#include "trainer/ranks/uncaught.h"

#include <cstdlib>
#include <exception>

#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {
namespace {

std::function<void(const std::string&)> stop_process;
std::terminate_handler former_handler = nullptr;

std::string uncaught_message() {
  const auto problem = std::current_exception();
  if (!problem) return "std::terminate was called";
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& exception) {
    return first_line(exception);
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

[[noreturn]] void handle() {
  stop_process(uncaught_message());
  std::abort();
}

}  // namespace

UncaughtExceptions::UncaughtExceptions(std::function<void(const std::string&)> stop) {
  stop_process = std::move(stop);
  former_handler = std::set_terminate(handle);
}

UncaughtExceptions::~UncaughtExceptions() {
  std::set_terminate(former_handler);
}

}  // namespace dtool::trainer
