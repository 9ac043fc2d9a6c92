#pragma once

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

}  // namespace spillway::cli
