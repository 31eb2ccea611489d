// SPDX-License-Identifier: MIT
// Makes the compiler build a function once for each generation of x86-64 processors. At its start
// the program chooses the newest version that the processor supports.
#pragma once

// Sanitizers' start-up code is incompatible with this choice.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DTOOL_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DTOOL_WIDEST
#endif
