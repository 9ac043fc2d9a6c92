#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/terminal.h"
#include "src/run/kept_profiles.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

KeptProfiles kept_profiles() {
  const std::filesystem::path folder = cache_folder();
  if (!folder.empty()) return KeptProfiles{folder};
  throw um::Error{
      "nothing is kept: SPILLWAY_CACHE is off, or neither XDG_CACHE_HOME nor HOME names a folder"};
}

nlohmann::json to_json(const KeptProfiles::Entry& entry) {
  return {{"file", entry.file},     {"title", entry.title},       {"measured", entry.measured},
          {"device", entry.device}, {"backend", entry.backend},   {"memory", entry.memory},
          {"far", entry.far},       {"bytes", entry.size.count()}};
}

void print(const std::vector<KeptProfiles::Entry>& entries, const std::string& folder) {
  if (entries.empty()) return fmt::print("no measured times in {}\n", folder);
  um::Bytes sum;
  std::vector<TableLine> lines{{"times of", "measured", "memory", "far", "size"}};
  for (const KeptProfiles::Entry& entry : entries) {
    sum += entry.size;
    lines.push_back(
        {entry.title, entry.measured, entry.memory, entry.far, um::to_string(entry.size)});
  }
  fmt::print("{}{} in {}, in all {}\n", text_table(lines, 4), um::count_of(entries.size(), "step"),
             folder, um::to_string(sum));
}

void show_cache(const std::string& path) {
  expect_writable(path);
  const KeptProfiles kept = kept_profiles();
  const std::vector<KeptProfiles::Entry> entries = kept.entries();
  if (path != "-") print(entries, kept.folder().string());
  if (path.empty()) return;
  nlohmann::json list = nlohmann::json::array();
  for (const KeptProfiles::Entry& entry : entries) list.push_back(to_json(entry));
  prefetch::write_json({{"folder", kept.folder().string()}, {"profiles", list}}, path);
}

}  // namespace

void add_cache_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "cache", "Show the measured times that train keeps for its next start, or clear them");
  const auto json = std::make_shared<std::string>();  // shared with the callback
  command->add_option("--json", *json,
                      "Write what is kept to this file, - for standard output instead of the text");
  CLI::App* const clearing = command->add_subcommand("clear", "Remove all measured times");
  clearing->callback([json] {
    if (!json->empty()) throw um::Error{"cache clear shows nothing: leave out --json"};
    const KeptProfiles kept = kept_profiles();
    const std::size_t removed = kept.clear();
    fmt::print("removed the times of {} from {}\n", um::count_of(removed, "step"),
               kept.folder().string());
  });
  clearing->footer("Example: spillway cache clear");
  command->callback([command, json] {
    if (command->get_subcommands().empty()) show_cache(*json);
  });
  command->footer(
      "The folder is $XDG_CACHE_HOME/spillway, else ~/.cache/spillway, or what $SPILLWAY_CACHE "
      "says; SPILLWAY_CACHE=off keeps nothing, as --no-cache does.\n"
      "Example: spillway cache");
}

}  // namespace spillway::cli
