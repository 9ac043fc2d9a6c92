#pragma once

#include <cstddef>  // says which C library it is

/// Marks a function of numeric loops, which is then compiled for several instruction sets. It runs
/// in the best one of the machine, whatever oneDNN is told to use. Sanitizers and some C libraries
/// do not support this dispatch.
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPILLWAY_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SPILLWAY_WIDE
#endif
