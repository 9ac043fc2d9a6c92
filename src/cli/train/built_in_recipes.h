#pragma once

#include <span>
#include <string_view>

namespace spillway::cli {

/// A recipe that comes with the program.
struct BuiltInRecipe {
  std::string_view name;
  std::string_view text;  ///< a JSON object of flags
};

/// Returns the files of src/cli/train/recipes at build time, by name.
[[nodiscard]] std::span<const BuiltInRecipe> built_in_recipes();

}  // namespace spillway::cli
