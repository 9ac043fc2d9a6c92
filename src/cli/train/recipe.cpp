#include "src/cli/train/recipe.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "prefetch/files/json.h"
#include "src/cli/flags/flag_values.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kRecipe = "--recipe";
constexpr const char* kDescription = "description";
// Flags of the initial random weights; unused with --weights and in a resumed training.
constexpr std::array<std::string_view, 2> kDrawing{"init", "zero-gamma"};
// Flags of given initial weights; unused in a resumed training.
constexpr std::array<std::string_view, 2> kWeights{"weights", "new-head"};

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : built_in_recipes()) names.emplace_back(recipe.name);
  return names;
}

// Opens a file or a built-in recipe. Throws: um::Error that lists the built-in recipes when there
// is none of this name.
prefetch::JsonFile open_recipe(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) {
    return prefetch::JsonFile{name};
  }
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.name == name) return {std::string{recipe.text}, "recipe " + name};
  }
  const std::vector<std::string> names = recipe_names();
  throw um::Error{suggest_name(
      "recipe", name, names,
      fmt::format("there is no recipe '{}'; there are {}files whose names "
                  "end in .json",
                  name, names.empty() ? "" : fmt::format("{}, and ", fmt::join(names, ", "))))};
}

// Removes --recipe FILE or --recipe=FILE and returns FILE, or nothing.
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

// Returns whether a training must resume, not only if it can (--resume auto).
bool is_to_resume(const std::vector<std::string>& arguments) {
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (*at == "--resume=true") return true;
    if (*at == "--resume") return at + 1 == arguments.end() || *(at + 1) != "auto";
  }
  return false;
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
  const auto nearest = um::nearest_name(name, names);
  throw um::Error{file + ": spillway " + command.get_name() + " has no option '" + name + "'" +
                  (nearest ? "; did you mean '" + *nearest + "'?" : "")};
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Returns the command-line argument for an entry; nothing for a false flag.
std::optional<std::string> argument_of(const CLI::Option& option, const std::string& name,
                                       const json& value, const std::string& file) {
  const bool is_flag = option.get_items_expected_max() == 0;
  const std::string flag = "--" + name;
  if (option.get_items_expected_min() == 0 && value.is_boolean()) {
    return value.get<bool>() ? std::optional{flag} : std::nullopt;
  }
  if (is_flag) throw um::Error{file + ": '" + name + "' is true or false"};
  const auto is_plain = [](const json& each) { return each.is_string() || each.is_number(); };
  const bool is_list = value.is_array() && !value.empty() && std::ranges::all_of(value, is_plain);
  if (!is_plain(value) && !is_list) {
    throw um::Error{file + ": '" + name + "' is a number, a text, or a list of these"};
  }
  std::vector<std::string> parts;
  if (is_list) {
    std::ranges::transform(value, std::back_inserter(parts), text_of);
  } else {
    parts.push_back(text_of(value));
  }
  std::string argument = fmt::format("{}={}", flag, fmt::join(parts, ","));
  if (argument.find('\0') == std::string::npos) return argument;
  throw um::Error{file + ": '" + name + "' has a zero byte, where a word of a command line ends"};
}

}  // namespace

void add_recipe_to(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--recipe", [](const std::string& /*file*/) {},
          "Flags of this command from a JSON file, such as {\"lr\": 0.1, \"nesterov\": true}; "
          "flags given beside it win. Recipes that come with the program: " +
              fmt::format("{}", fmt::join(recipe_names(), ", ")))
      ->type_name("FILE")
      ->group("What is trained");
}

std::vector<std::string> expand_recipe(const CLI::App& command,
                                       std::vector<std::string> arguments) {
  const std::optional<std::string> name = take_recipe(arguments);
  if (!name) return arguments;
  const prefetch::JsonFile recipe = open_recipe(*name);
  const std::string& file = *name;
  if (!recipe.value().is_object()) throw um::Error{file + " is no JSON object of flags"};
  const std::vector<std::string> given = arguments;
  const bool goes_on = is_to_resume(given);
  const bool draws = !goes_on && !is_given(given, "--weights");
  for (const auto& [key, value] : recipe.value().items()) {
    if (key == kDescription) continue;
    if (goes_on && std::ranges::find(kWeights, key) != kWeights.end()) continue;
    if (!draws && std::ranges::find(kDrawing, key) != kDrawing.end()) continue;
    const auto argument = argument_of(option_of(command, key, file), key, value, file);
    if (argument && !is_given(given, "--" + key)) arguments.push_back(*argument);
  }
  return arguments;
}

}  // namespace spillway::cli
