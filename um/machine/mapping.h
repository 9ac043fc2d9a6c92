#pragma once

#include <cstddef>
#include <cstddef>  // says which C library it is

#include "um/bytes.h"

/// In front of a function of loops over numbers, which is then compiled for several instruction
/// sets, and runs in the best of them that the machine has, whatever oneDNN is told to use.
/// Sanitizers cannot run what chooses, and not all C libraries have it.
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPILLWAY_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SPILLWAY_WIDE
#endif

namespace spillway::um {

/// Maps `size` bytes of fresh memory that reads as zeros, in huge pages where it can be, unknown to
/// child processes (a fork would make the kernel copy it page by page). Aligned to 2 MiB when it is
/// that large, else to a page; nothing is touched yet. A zero `size` gives an empty range.
/// Throws: OutOfMemory.
[[nodiscard]] Range map_memory(Bytes size);

/// Gives every page of `memory`, from map_memory(), its physical memory now, so that first use is
/// not slow. Throws: OutOfMemory.
void touch_memory(Range memory);

/// Gives back what map_memory() returned.
void unmap_memory(Range memory) noexcept;

}  // namespace spillway::um
