#pragma once

#include <filesystem>
#include <string>

namespace spillway::cli {

/// Leaves nothing behind. An empty path and "-" are fine.
/// Throws: um::Error when a file cannot be written at `path`; so that a long run does not find out
/// at its end.
void expect_writable(const std::string& path);

/// Leaves nothing behind. Throws: um::Error when `folder` cannot be made or nothing written into
/// it.
void expect_writable_folder(const std::filesystem::path& folder);

}  // namespace spillway::cli
