#pragma once

#include <filesystem>

#include "um/bytes.h"

namespace spillway::um {

/// The memory this process could use more of now without swapping: what the system has available,
/// or the room its memory cgroups (version 2 or 1) leave, whichever is smaller. `root` is the
/// folder that holds proc and sys.
/// Throws: Error when /proc/meminfo cannot be read.
[[nodiscard]] Bytes available_memory(const std::filesystem::path& root = "/");

}  // namespace spillway::um
