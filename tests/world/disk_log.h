#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace spillway::world {

/// Records the program's operations on files of one folder, so that tests can replay a power
/// failure. SPILLWAY_WORLD_DISK names the folder and SPILLWAY_WORLD_LOG the file of records, which
/// tests/world/disk.py reads. Without these variables nothing is recorded.
///
/// Paths are absolute. Call each function after the operation has succeeded.
void record_created(std::string_view path) noexcept;
void record_written(std::string_view path, std::uint64_t offset,
                    std::span<const std::byte> bytes) noexcept;
void record_truncated(std::string_view path, std::uint64_t size) noexcept;
void record_synced(std::string_view path) noexcept;
void record_renamed(std::string_view from, std::string_view to) noexcept;
void record_removed(std::string_view path) noexcept;

}  // namespace spillway::world
