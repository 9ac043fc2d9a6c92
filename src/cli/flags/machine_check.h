#pragma once

#include <string>

namespace spillway::cli {

/// Complains about what is neither a machine's name nor a file; a check of CLI11's. A broken
/// machine file is no bad usage.
[[nodiscard]] std::string check_machine(const std::string& name_or_path);

}  // namespace spillway::cli
