#pragma once

#include <string>

namespace spillway::um {

/// Far memory: other RAM, or a file.
struct FarOptions {
  /// Empty: RAM. Else a path that does not exist yet, or a folder to put the file in.
  std::string file;
};

}  // namespace spillway::um
