#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::um {

/// Returns the CRC-32C (Castagnoli's polynomial), by the SSE 4.2 instruction if available,
/// otherwise by a table. Allocates nothing.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// Computes the CRC-32C of each of `sums.size()` equal parts of `bytes`, four parts at a time:
/// instructions depend on each other only within a part. Requires: the size of a part is a multiple
/// of 8.
void crc32c_of_parts(std::span<const std::byte> bytes, std::span<std::uint32_t> sums) noexcept;

/// Returns the same without the instruction. For tests.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

}  // namespace spillway::um
