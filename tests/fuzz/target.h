#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/mutation.h"

namespace spillway::fuzz {

/// A reader of what comes from outside.
struct Target {
  std::string name;                ///< of its folder in the corpus, too
  std::vector<std::string> seeds;  ///< good inputs, beside those of the corpus
  /// Reads one input; `folder` is empty, and its own. Throws: um::Error when it refuses.
  std::function<void(const std::string& input, const std::filesystem::path& folder)> read;
  /// Makes an input of its own, for every second case; null: all cases are spoilt inputs.
  std::function<std::string(Generator& generator)> draw{};
};

/// Writes a file, and returns its path.
inline std::string write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary} << bytes;
  return path.string();
}

/// The readers of that name; all there are where it is empty.
[[nodiscard]] std::vector<Target> targets_of(const std::string& name);

}  // namespace spillway::fuzz
