#pragma once

#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// Far memory: other RAM, or a file.
struct FarOptions {
  /// Empty: RAM. Else a path that does not exist yet, or a folder to put the file in.
  std::string file;
  /// Of unified memory, the bytes that will ever be far, where that is known: a GPU's driver takes
  /// RAM for them only as they leave, and nobody could stop then.
  Bytes used;
};

}  // namespace spillway::um
