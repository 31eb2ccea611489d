// Makes the compiler build a function once for each generation of x86-64 processors, the newest
// that the processor knows being taken when the program starts.
#pragma once

// Sanitizers' start-up code does not go together with the choice.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DTOOL_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DTOOL_WIDEST
#endif
