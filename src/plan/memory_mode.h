#pragma once

#include <string_view>

namespace spillway {

/// Where the tensors of a step live.
enum class MemoryMode {
  kManaged,  ///< unified memory driven by hints
  kCopy,     ///< an arena and explicit copies
  kResident  ///< all in near memory
};

[[nodiscard]] std::string_view to_string(MemoryMode mode);

}  // namespace spillway
