#include "src/plan/memory_mode.h"

namespace spillway {

std::string_view to_string(MemoryMode mode) {
  switch (mode) {
    case MemoryMode::kManaged:
      return "managed";
    case MemoryMode::kCopy:
      return "copy";
    case MemoryMode::kResident:
      return "resident";
  }
  return "";
}

}  // namespace spillway
