#pragma once

#include <cstddef>

namespace spillway::processor {

// Knows the memory of the device, and what each launch does with it. A fault is: an access to what
// is neither device nor shared memory; accesses of two threads to the same bytes, at least one of
// which writes, without a barrier between them; a read of shared memory that the block has not
// written.

/// `begin` .. `begin + size` is a block of device memory, until it is removed.
void add_block(const std::byte* begin, std::size_t size);
void remove_block(const std::byte* begin);
/// Whether a block has all of these bytes.
[[nodiscard]] bool is_in_a_block(const std::byte* begin, std::size_t size);

/// To be called for each access of a kernel, by `code`. Does nothing while no kernel runs.
void note_access(const void* address, std::size_t size, bool writes, const void* code);

}  // namespace spillway::processor
