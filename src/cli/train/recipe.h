#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// A recipe that comes with the program.
struct BuiltInRecipe {
  std::string_view name;
  std::string_view text;  ///< a JSON object of flags
};

/// Returns the files of src/cli/train/recipes at build time, by name.
[[nodiscard]] std::span<const BuiltInRecipe> built_in_recipes();

/// Adds --recipe, which expand_recipe() replaces before `command` is parsed.
void add_recipe_to(CLI::App& command);

/// Returns `arguments` of `command`, with the flags of their --recipe appended unless given
/// already. A recipe is a JSON object of flags by name, without dashes: {"net": "resnet18", "lr":
/// 0.1, "nesterov": true, "milestones": [3000, 6000]}. An entry "description" may say what it is
/// for. With --resume among `arguments`, its "weights" is ignored.
/// Throws: um::Error when the recipe cannot be read, has a flag that `command` lacks, or an invalid
/// value.
[[nodiscard]] std::vector<std::string> expand_recipe(const CLI::App& command,
                                                     std::vector<std::string> arguments);

}  // namespace spillway::cli
