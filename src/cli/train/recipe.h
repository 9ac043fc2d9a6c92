#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/cli/flags/cli11.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// --recipe, which expand_recipe() replaces before `command` is parsed.
void add_recipe_to(CLI::App& command);

/// `arguments` of `command`, with the flags of the file of their --recipe at the end: those that
/// they have not themselves. A recipe is a JSON object of flags by name, without their dashes:
/// {"net": "resnet18", "lr": 0.1, "nesterov": true, "milestones": [3000, 6000]}; "description" may
/// say what it is for. With --resume among `arguments`, its "weights" do not count. Throws:
/// um::Error when it cannot be read, has a flag that `command` has not, or a value that is none.
[[nodiscard]] std::vector<std::string> expand_recipe(const CLI::App& command,
                                                     std::vector<std::string> arguments);

/// The file of a recipe: a path, or the name of one that comes with the program.
/// Throws: um::Error when there is no such recipe, with the names that there are.
[[nodiscard]] std::filesystem::path find_recipe(const std::string& name);

}  // namespace spillway::cli
