#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace spillway::world {

/// Records what the program does to the files of one folder, so that a power cut can be replayed:
/// SPILLWAY_WORLD_DISK names the folder, SPILLWAY_WORLD_LOG the file of records.
/// tests/world/disk.py reads them. Without these variables nothing is recorded.
///
/// Paths are absolute. Each call comes after the operation has succeeded.
void record_created(std::string_view path) noexcept;
void record_written(std::string_view path, std::uint64_t offset,
                    std::span<const std::byte> bytes) noexcept;
void record_truncated(std::string_view path, std::uint64_t size) noexcept;
void record_synced(std::string_view path) noexcept;
void record_renamed(std::string_view from, std::string_view to) noexcept;
void record_removed(std::string_view path) noexcept;

}  // namespace spillway::world
