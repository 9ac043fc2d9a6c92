#pragma once

#include <string>

namespace spillway::cli {

/// What `spillway --version` prints: the version, the commit, the compiler, oneDNN and CUDA, a line
/// each.
[[nodiscard]] std::string version_text();

}  // namespace spillway::cli
