#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::um {

/// CRC-32C (Castagnoli's polynomial), by the processor's own instruction where it has one
/// (SSE 4.2), else by a table. Allocates nothing.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// The CRC-32C of each of `sums.size()` equal parts of `bytes`: four at a time, because an
/// instruction waits for the one before it only within a part.
/// Requires: the size of a part is a multiple of 8.
void crc32c_of_parts(std::span<const std::byte> bytes, std::span<std::uint32_t> sums) noexcept;

/// The same without the instruction. For tests.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

}  // namespace spillway::um
