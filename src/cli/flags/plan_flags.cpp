#include "src/cli/flags/plan_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <system_error>

#include "prefetch/planners/catalogue.h"
#include "src/cli/flags/flag_values.h"
#include "src/plan/budget.h"
#include "src/run/kept_profiles.h"
#include "src/run/profiler.h"

namespace spillway::cli {
namespace {

const std::map<std::string, StateRule> kStates{
    {"auto", StateRule::kAuto}, {"near", StateRule::kNear}, {"far", StateRule::kFar}};

const std::map<std::string, UpdateRule> kUpdates{
    {"auto", UpdateRule::kAuto}, {"near", UpdateRule::kNear}, {"far", UpdateRule::kFar}};

std::string planner_help() {
  std::string text = "Planner; --memory resident uses none:";
  for (const auto& planner : prefetch::planners()) {
    text += "\n  " + std::string{planner->name()} + ": " + std::string{planner->description()};
  }
  return text;
}

// Complains about a number alone that must be meant otherwise, as 40 bytes hold no step; empty
// where it may be meant so.
std::string complaint_about_unit(const std::string& text) {
  constexpr double kFewBytes = 4096;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (status != std::errc{} || stop != end || !(number > 0) || number >= kFewBytes) return {};
  const std::string part = number < 1      ? fmt::format("{:.4g}%", 100 * number)
                           : number <= 100 ? text + "%"
                                           : text + "MiB";
  return fmt::format("'{0}' is {1}; did you mean {2} or {0}GiB?", text,
                     number < 1 ? "a part of a byte" : text + " bytes", part);
}

std::string check_micro_batches(const std::string& text) {
  if (text == "auto" || check_whole_number_from_one(text).empty()) return {};
  return "'" + text + "' is not a number of micro-batches; give auto, or a number like 4";
}

}  // namespace

void CacheOption::add_to(CLI::App& app) {
  app.add_flag("--no-cache", measures_anew,
               "Measure the times of tasks and link, and keep none. Otherwise the times of an "
               "earlier start of the same step are used (spillway cache shows them), until steps "
               "of a training differ from their prediction by more than 15 %")
      ->group(kPlanningHeading);
}

std::string CacheOption::folder() const {
  return measures_anew || has_short_measurements() ? "" : cache_folder().string();
}

std::string describe_kept_times(const std::optional<std::string>& since, const std::string& cache) {
  if (!since) return {};
  return fmt::format("times measured on {}, kept in {}; --no-cache measures anew\n", *since, cache);
}

void PlanFlags::add_to(CLI::App& app) {
  app.add_option(
         "--budget", budget,
         "Limit on near memory: bytes (512MiB, 2G for 2 GiB), a part of the resident run's need "
         "(40%), the "
         "smallest feasible budget (min), a point between that and the resident need (min+20%), "
         "or auto: the resident need, or nine tenths of the free memory if that is less")
      ->check(check_budget)
      ->capture_default_str()
      ->group(kPlanningHeading);
  app.add_option("--planner", planner, planner_help())
      ->check(check_planner)
      ->capture_default_str()
      ->group(kPlanningHeading);
  app.add_option(
         "--recompute", recompute,
         "auto: recompute layers where that is faster than moving their outputs; off: never")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kPlanningHeading);
  app.add_option(
         "--state", state,
         "Where weights and the optimizer's numbers may be. near: always in near memory; far: in "
         "far memory while no task needs them, with planner joint, fractional, capacity or "
         "on-demand; auto: near, unless the budget is too small for that or they are better far")
      ->check(CLI::IsMember{kStates})
      ->capture_default_str()
      ->group(kPlanningHeading);
  app.add_option(
         "--update", update,
         "Which side updates weights that are in far memory. near: they and the optimizer's "
         "numbers come for it; far: the processor beside far memory updates them there, and only "
         "gradients go far and new weights come (ZeRO-Offload), with planner joint, fractional or "
         "capacity; weights that are too small to move are updated near; auto: "
         "far where that is faster on this host; near for other devices and traces, and where "
         "state is near")
      ->check(CLI::IsMember{kUpdates})
      ->capture_default_str()
      ->group(kPlanningHeading);
}

// A resident run has no far memory for either.
UpdateRule PlanFlags::update_rule(MemoryMode memory) const {
  return memory == MemoryMode::kResident ? UpdateRule::kAuto : kUpdates.at(update);
}

StateRule PlanFlags::state_rule(MemoryMode memory) const {
  return memory == MemoryMode::kResident ? StateRule::kAuto : kStates.at(state);
}

PlanRequest PlanFlags::request(MemoryMode memory) const {
  return {.memory = memory,
          .planner = &prefetch::find_planner(planner),
          .may_recompute = recompute == "auto",
          .state = state_rule(memory),
          .update = update_rule(memory)};
}

std::string check_planner(const std::string& name) {
  std::string complaint = complaint_of([&] { static_cast<void>(prefetch::find_planner(name)); });
  if (complaint.empty() || name.find(':') != std::string::npos) return complaint;
  std::vector<std::string> names;
  for (const auto& planner : prefetch::planners()) names.emplace_back(planner->name());
  return suggest_name("planner", name, names, complaint);
}

std::string check_budget(const std::string& text) {
  if (std::string complaint = complaint_about_unit(text); !complaint.empty()) return complaint;
  return complaint_of([&] { static_cast<void>(Budget::parse(text)); });
}

void MicroBatchFlags::add_to(CLI::App& app, const std::string& more) {
  const auto take = [this](const std::string& text) {
    is_automatic = text == "auto";
    if (!is_automatic) count = std::stoull(text);
  };
  CLI::Option* const number =
      app.add_option_function<std::string>(
             "--micro-batches", take,
             "Cut each batch into so many equal micro-batches, which go forward and backward one "
             "by one and whose gradients are added up: N, or auto (by moDNN's Eq. 3 for modnn and "
             "vdnn+, by trial for the others). Batch norm normalizes each by itself" +
                 more)
          ->check(check_micro_batches)
          ->type_name("N")
          ->group(kPlanningHeading);
  app.add_option("--micro-batch-size", size,
                 "The same by their samples: the fewest micro-batches of at most so many")
      ->check(check_whole_number_from_one)
      ->excludes(number)
      ->type_name("N")
      ->group(kPlanningHeading);
}

}  // namespace spillway::cli
