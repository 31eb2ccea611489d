// Answers dtool's requests: frames on standard input, replies on standard output in the same order.
#pragma once

namespace dtool::host {

/// Serves until the input ends. The exit code: 0, or 2 after a request that is none.
int serve(int input, int output);

}  // namespace dtool::host
