#pragma once

#include <cstddef>
#include <cstddef>  // says which C library it is

#include "um/bytes.h"

/// Marks a function of numeric loops, which is then compiled for several instruction sets. It runs
/// in the best one of the machine, whatever oneDNN is told to use. Sanitizers and some C libraries
/// do not support this dispatch.
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPILLWAY_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SPILLWAY_WIDE
#endif

namespace spillway::um {

/// Maps `size` bytes of fresh zeros, in huge pages if possible, without touching them. Child
/// processes do not inherit the memory, since a fork would copy it page by page. It is aligned to 2
/// MiB when it is that large, otherwise to a page. A zero `size` gives an empty range. Throws:
/// OutOfMemory.
[[nodiscard]] Range map_memory(Bytes size);

/// Gives every page of `memory`, from map_memory(), its physical memory now, so that the first use
/// is not slow. Throws: OutOfMemory.
void touch_memory(Range memory);

/// Unmaps the result of map_memory().
void unmap_memory(Range memory) noexcept;

}  // namespace spillway::um
