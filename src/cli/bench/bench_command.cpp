#include "src/cli/bench/bench_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/cli/flags/flag_values.h"

namespace spillway::cli {
namespace {

constexpr const char* kMeasuring = "Measuring";
constexpr std::size_t kQuickRepeats = 2;
constexpr double kQuickSeconds = 0.1;
constexpr double kMinSeconds = 0.05;

// A number where the text is one: "4" and "0.03", but not "4GiB".
nlohmann::json json_of(const std::string& text) {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_number() ? value : nlohmann::json(text);
}

nlohmann::json json_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return option.count() > 0;  // a flag
  if (option.count() == 0) {
    const std::string text = option.get_default_str();
    return text.empty() ? nlohmann::json() : json_of(text);
  }
  const std::vector<std::string>& results = option.results();
  if (results.size() == 1) return json_of(results.front());
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& result : results) all.push_back(json_of(result));
  return all;
}

}  // namespace

void BenchFlags::add_to(CLI::App& command) {
  command
      .add_option("--json", json,
                  "Write the measurements as JSON to this file, - for standard output")
      ->group(kMeasuring);
  command
      .add_flag("--quick", quick,
                "Trial run with small sizes and two repetitions; its figures mean "
                "nothing")
      ->group(kMeasuring);
  constexpr std::size_t kMaxRepeats = 1'000'000;
  command.add_option("--repeats", repeats, "Maximum repetitions of each measurement")
      ->check(whole_number(1, kMaxRepeats))
      ->capture_default_str()
      ->group(kMeasuring);
  command
      .add_option("--deviation", deviation,
                  "Stop repeating when the median absolute deviation is at most this part of the "
                  "median")
      ->check(check_amount)
      ->capture_default_str()
      ->group(kMeasuring);
  command.add_option("--seconds", seconds, "Time limit of each measurement in seconds")
      ->check(check_amount)
      ->capture_default_str()
      ->group(kMeasuring);
}

Repetition BenchFlags::repetition() const {
  Repetition repetition{.settling = {.deviation = deviation},
                        .max_runs = repeats,
                        .min_time = Seconds{kMinSeconds},
                        .max_time = Seconds{seconds}};
  if (quick) {
    repetition.max_runs = std::min(repeats, kQuickRepeats);
    repetition.max_time = Seconds{std::min(seconds, kQuickSeconds)};
  }
  return repetition;
}

nlohmann::json flags_json(const CLI::App& command) {
  nlohmann::json flags = nlohmann::json::object();
  for (const CLI::Option* const option : command.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.empty() || names.front().starts_with("help") || names.front() == "json") continue;
    flags[names.front()] = json_of(*option);
  }
  return flags;
}

void add_bench_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("bench", "Measure this machine's memory, link and training steps");
  command->require_subcommand(1);
  add_bench_link(*command);
  add_bench_paging(*command);
  add_bench_train(*command);
  add_bench_planners(*command);
  command->footer(
      "Each figure is the median of repeated runs. spillway report shows the files of --json.\n"
      "Example: spillway bench link --json link.json\n"
      "Example: spillway bench paging --json paging.json\n"
      "Example: spillway bench train --json train.json\n"
      "Example: spillway bench planners --json planners.json");
}

}  // namespace spillway::cli
