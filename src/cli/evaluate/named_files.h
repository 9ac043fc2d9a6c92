#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

/// The image files that a user names: files, in that order, and those in and below folders.
/// Throws: um::Error when one is not there, is neither, or a folder holds no image.
[[nodiscard]] std::vector<std::string> named_image_files(const std::vector<std::string>& paths);

}  // namespace spillway::cli
