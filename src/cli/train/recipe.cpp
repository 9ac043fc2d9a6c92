#include "src/cli/train/recipe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "prefetch/files/json.h"
#include "src/cli/flags/suggest_name.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kRecipe = "--recipe";
constexpr const char* kDescription = "description";
constexpr const char* kWeights = "weights";  // where a training begins, and none goes on from

// Beside the program as it is installed, and where it was built from.
std::vector<fs::path> recipe_folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {program / SPILLWAY_RECIPES_FROM_PROGRAMS, SPILLWAY_RECIPES};
}

// Known when the program is built: to list a folder takes memory that libstdc++ must not lack.
std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  std::istringstream words{SPILLWAY_RECIPE_NAMES};
  for (std::string name; words >> name;) names.push_back(name);
  return names;
}

// Takes --recipe FILE or --recipe=FILE out; nothing where there is none.
std::optional<std::string> take_recipe(std::vector<std::string>& arguments) {
  const std::string with_value = std::string{kRecipe} + "=";
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (at->starts_with(with_value)) {
      const std::string name = at->substr(with_value.size());
      arguments.erase(at);
      return name;
    }
    if (*at != kRecipe || at + 1 == arguments.end()) continue;
    const std::string name = *(at + 1);
    arguments.erase(at, at + 2);
    return name;
  }
  return std::nullopt;
}

bool is_given(const std::vector<std::string>& arguments, const std::string& flag) {
  return std::ranges::any_of(arguments, [&](const std::string& each) {
    return each == flag || each.starts_with(flag + "=");
  });
}

const CLI::Option& option_of(const CLI::App& command, const std::string& name,
                             const std::string& file) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& each : option->get_lnames()) {
      if (each == "help" || each == "recipe") continue;
      if (each == name) return *option;
      names.push_back(each);
    }
  }
  const auto nearest = nearest_name(name, names);
  throw um::Error{file + ": spillway " + command.get_name() + " has no option '" + name + "'" +
                  (nearest ? "; did you mean '" + *nearest + "'?" : "")};
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// As a command line has it: nothing for a flag that is false.
std::optional<std::string> argument_of(const CLI::Option& option, const std::string& name,
                                       const json& value, const std::string& file) {
  const bool is_flag = option.get_items_expected_max() == 0;
  const std::string flag = "--" + name;
  if (is_flag && value.is_boolean()) {
    return value.get<bool>() ? std::optional{flag} : std::nullopt;
  }
  if (is_flag) throw um::Error{file + ": '" + name + "' is true or false"};
  if (value.is_string() || value.is_number()) return flag + "=" + text_of(value);
  const auto is_plain = [](const json& each) { return each.is_string() || each.is_number(); };
  if (!value.is_array() || value.empty() || !std::ranges::all_of(value, is_plain)) {
    throw um::Error{file + ": '" + name + "' is a number, a text, or a list of these"};
  }
  std::vector<std::string> parts;
  std::ranges::transform(value, std::back_inserter(parts), text_of);
  return fmt::format("{}={}", flag, fmt::join(parts, ","));
}

}  // namespace

void add_recipe_to(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--recipe", [](const std::string& /*file*/) {},
          "Flags of this command from a JSON file, such as {\"lr\": 0.1, \"nesterov\": true}; "
          "flags "
          "given beside it win. Recipes that come with the program: " +
              fmt::format("{}", fmt::join(recipe_names(), ", ")))
      ->type_name("FILE")
      ->group("What is trained");
}

fs::path find_recipe(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return name;
  for (const fs::path& folder : recipe_folders()) {
    fs::path path = folder / (name + ".json");
    std::error_code error;
    if (fs::exists(path, error)) return path;
  }
  const std::vector<std::string> names = recipe_names();
  throw um::Error{suggest_name(
      "recipe", name, names,
      fmt::format("there is no recipe '{}'; there are {}files whose names "
                  "end in .json",
                  name, names.empty() ? "" : fmt::format("{}, and ", fmt::join(names, ", "))))};
}

std::vector<std::string> expand_recipe(const CLI::App& command,
                                       std::vector<std::string> arguments) {
  const std::optional<std::string> name = take_recipe(arguments);
  if (!name) return arguments;
  const std::string file = find_recipe(*name).string();
  const prefetch::JsonFile recipe{file};
  if (!recipe.value().is_object()) throw um::Error{file + " is no JSON object of flags"};
  const std::vector<std::string> given = arguments;
  const bool goes_on = is_given(given, "--resume");
  for (const auto& [key, value] : recipe.value().items()) {
    if (key == kDescription || (goes_on && key == kWeights)) continue;
    const auto argument = argument_of(option_of(command, key, file), key, value, file);
    if (argument && !is_given(given, "--" + key)) arguments.push_back(*argument);
  }
  return arguments;
}

}  // namespace spillway::cli
