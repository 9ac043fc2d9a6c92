#pragma once

#include <cstddef>

namespace spillway::processor {

// Tracks device memory and the accesses of each launch. Faults are: an access outside device and
// shared memory; accesses of two threads to the same bytes, at least one of them a write, without a
// barrier in between; a read of shared memory that the block has not written.

/// Registers `begin` .. `begin + size` as device memory until it is removed.
void add_block(const std::byte* begin, std::size_t size);
void remove_block(const std::byte* begin);
/// Returns true if a single block contains all of these bytes.
[[nodiscard]] bool is_in_a_block(const std::byte* begin, std::size_t size);

/// Must be called for each access of a kernel, at address `code`. Devices fault where `address` is
/// not a multiple of `alignment`. A no-op if no kernel is running.
void note_access(const void* address, std::size_t size, std::size_t alignment, bool writes,
                 const void* code);

/// Bytes of device memory.
struct Touched {
  std::size_t read = 0;      ///< distinct
  std::size_t written = 0;   ///< distinct
  std::size_t accessed = 0;  ///< by all accesses together
};
/// Returns what the last launch touched; nothing without access hooks.
[[nodiscard]] Touched touched_by_last_launch();

}  // namespace spillway::processor
