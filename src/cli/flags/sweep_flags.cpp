#include "src/cli/flags/sweep_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "prefetch/planners/catalogue.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/plan_flags.h"
#include "src/plan/budget.h"
#include "src/sweep/scenario.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

// "12" as 12 budgets.
std::optional<std::size_t> parse_count(std::string_view text) {
  constexpr std::size_t kMostBudgets = 1000;
  std::size_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, count);
  if (status != std::errc{} || stop != end || count < 2 || count > kMostBudgets)
    return std::nullopt;
  return count;
}

bool has_no_unit(std::string_view text) {
  return !text.empty() && (text.back() == '.' || (text.back() >= '0' && text.back() <= '9'));
}

constexpr const char* kCount =
    "a whole number from 2 to 1000 alone stands for so many budgets from the smallest feasible to "
    "the resident need";

std::string without_unit(const std::string& text) {
  return "'" + text + "' has no unit: for bytes give " + text + "B; " + kCount;
}

constexpr const char* kComparison = "What is compared";

}  // namespace

std::string check_budgets(const std::string& text) {
  if (parse_count(text)) return {};
  const std::string complaint = complaint_of([&] { static_cast<void>(Budget::parse(text)); });
  if (!complaint.empty()) return complaint + "; " + kCount;
  return has_no_unit(text) ? without_unit(text) : "";
}

void expect_budgets(const std::vector<std::string>& list) {
  if (list.size() == 1) return;
  const auto found = std::ranges::find_if(list, has_no_unit);
  if (found != list.end()) throw CLI::ValidationError{"--budgets", without_unit(*found)};
}

std::vector<um::Bytes> resolve_budgets(const std::vector<std::string>& list,
                                       const prefetch::NearNeed& need, um::Bytes available) {
  if (list.size() == 1) {
    if (const auto count = parse_count(list.front())) return linear_budgets(need, *count);
  }
  std::vector<um::Bytes> budgets;
  budgets.reserve(list.size());
  for (const std::string& text : list) {
    budgets.push_back(Budget::parse(text).resolve(need, available));
  }
  return budgets;
}

std::string check_planners(const std::string& text) {
  if (text == "all") return {};
  return check_planner(text);
}

std::vector<Strategy> find_strategies(const std::vector<std::string>& list, bool may_recompute) {
  std::vector<Strategy> strategies;
  const auto add = [&](const prefetch::Planner& planner) {
    if (std::ranges::find(strategies, &planner, &Strategy::planner) != strategies.end()) return;
    strategies.push_back({.planner = &planner, .may_recompute = may_recompute});
  };
  for (const std::string& name : list) {
    if (name != "all") {
      add(prefetch::find_planner(name));
      continue;
    }
    for (const auto& planner : prefetch::planners()) add(*planner);
  }
  return strategies;
}

std::string check_link_factor(const std::string& text) {
  return complaint_of([&] { static_cast<void>(parse_link_factor(text)); });
}

double parse_link_factor(const std::string& text) {
  constexpr double kSmallest = 0.001;
  constexpr double kLargest = 1000;
  double factor = 0;
  const std::string_view number = std::string_view{text}.substr(text.starts_with('x') ? 1 : 0);
  const char* const end = number.data() + number.size();
  const auto [stop, status] = std::from_chars(number.data(), end, factor, std::chars_format::fixed);
  if (status != std::errc{} || stop != end || !(factor >= kSmallest && factor <= kLargest)) {
    throw um::Error{"'" + text +
                    "' is no factor for the link: give a number from 0.001 to 1000, such as x0.25 "
                    "or x4"};
  }
  return factor;
}

std::vector<prefetch::Machine> find_machines(const std::vector<std::string>& list) {
  std::vector<prefetch::Machine> machines;
  machines.reserve(list.size());
  for (const std::string& name : list) machines.push_back(prefetch::find_machine(name));
  return machines;
}

void ComparisonFlags::add_to(CLI::App& app) {
  add_sweep_points_to(app);
  add_strategies_to(app);
}

std::vector<Strategy> ComparisonFlags::strategies() const {
  return find_strategies(planners, recompute == "auto");
}

void ComparisonFlags::add_sweep_points_to(CLI::App& app) {
  app.add_option(
         "--budgets", budgets,
         "Budgets as for spillway plan, separated by commas, bytes with their unit; or a number "
         "from 2 to 1000 of budgets between the smallest feasible and the resident need")
      ->delimiter(',')
      ->check(check_budgets)
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--machines", machines,
                 "Machines or machine files, separated by commas (default: v100)")
      ->delimiter(',')
      ->check(check_machine)
      ->group(kComparison);
  app.add_option("--links", links, "Link bandwidths as multiples of the machine's: x0.25,x1,x4")
      ->delimiter(',')
      ->check(check_link_factor)
      ->capture_default_str()
      ->group(kComparison);
}

void ComparisonFlags::add_strategies_to(CLI::App& app) {
  app.add_option("--planners", planners,
                 "Planners, separated by commas, or all; spillway plan --help explains them")
      ->delimiter(',')
      ->check(check_planners)
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--recompute", recompute, "auto: planners may recompute layers; off: never")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kComparison);
  app.add_option("--memory", memory,
                 "managed: plans may move parts of blocks; copy: whole blocks only, as explicit "
                 "copies do")
      ->check(CLI::IsMember({"managed", "copy"}))
      ->capture_default_str()
      ->group(kComparison);
}

}  // namespace spillway::cli
