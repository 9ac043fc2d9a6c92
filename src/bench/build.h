#pragma once

#include <string>

namespace spillway {

/// Returns the project's version, such as "1.2.3".
[[nodiscard]] std::string build_version();

/// The commit that this program was built from, 40 digits; empty where the sources are not in a
/// repository. What was changed since that commit does not show.
[[nodiscard]] std::string build_commit();

}  // namespace spillway
