#pragma once

#include <string>

namespace spillway::dropin {

/// A sentence of um's, which advises in the words of the command line, in those of spillway_um.h:
/// far_path for --far file:PATH, and so on.
[[nodiscard]] std::string in_c_names(std::string sentence);

}  // namespace spillway::dropin
