#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace spillway::um {

/// Writes `text` to the file that a user named: an ordinary file is replaced as a whole, and a link
/// stays and is followed. A device or a named pipe is written into, as is a file in a folder that
/// takes no new ones. Throws: Error.
void write_output(const std::string& path, std::string_view text);

/// Where a link at `path` leads in the end, also when nothing is there.
[[nodiscard]] std::filesystem::path place_of(const std::filesystem::path& path);

}  // namespace spillway::um
