#pragma once

#include <span>
#include <string_view>

namespace spillway::cli {

/// A recipe that comes with the program.
struct BuiltInRecipe {
  std::string_view name;
  std::string_view text;  ///< a JSON object of flags
};

/// The files of src/cli/train/recipes as they were when this was built, by name.
[[nodiscard]] std::span<const BuiltInRecipe> built_in_recipes();

}  // namespace spillway::cli
