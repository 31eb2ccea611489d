// SPDX-License-Identifier: MIT
// Answers dtool's requests: frames on standard input, replies on standard output in the same order.
#pragma once

namespace dtool::host {

/// Serves one command after another, until the input ends. Returns the exit code of the last one: 2
/// if a request could not be answered; else 0, or the exit code of the job whose log was followed.
int serve(int input, int output);

}  // namespace dtool::host
