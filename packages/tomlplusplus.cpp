// SPDX-License-Identifier: MIT
// toml++ for the portable dtool: what libtomlplusplus.so holds, since Debian has no archive of it.
// packages.cmake builds it.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
