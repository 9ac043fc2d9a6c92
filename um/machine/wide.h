#pragma once

#include <cstddef>  // says which C library it is

/// In front of a function of loops over numbers, which is then compiled for several instruction
/// sets, and runs in the best of them that the machine has, whatever oneDNN is told to use.
/// Sanitizers cannot run what chooses, and not all C libraries have it.
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPILLWAY_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SPILLWAY_WIDE
#endif
