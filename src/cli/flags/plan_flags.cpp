#include "src/cli/flags/plan_flags.h"

#include <CLI/CLI.hpp>

#include "prefetch/planners/catalogue.h"
#include "src/cli/flags/complaint.h"
#include "src/plan/budget.h"

namespace spillway::cli {
namespace {

constexpr const char* kPlanning = "Planning";

std::string check_planner(const std::string& name) {
  return complaint_of([&] { static_cast<void>(prefetch::find_planner(name)); });
}

std::string planner_help() {
  std::string text = "Strategy, which --memory resident does not use:";
  for (const auto& planner : prefetch::planners()) {
    text += "\n  " + std::string{planner->name()} + ": " + std::string{planner->description()};
  }
  return text;
}

}  // namespace

void PlanFlags::add_to(CLI::App& app) {
  app.add_option(
         "--budget", budget,
         "Near memory for everything: bytes (512MiB), a part of what the resident run "
         "needs (40%), the smallest feasible (min), a way from there to the resident need "
         "(min+20%), or auto: what a run that moves nothing needs, where the machine has it, "
         "else nine tenths of what is free")
      ->check(check_budget)
      ->capture_default_str()
      ->group(kPlanning);
  app.add_option("--planner", planner, planner_help())
      ->check(check_planner)
      ->capture_default_str()
      ->group(kPlanning);
  app.add_option("--recompute", recompute,
                 "auto: run cheap layers again where that beats moving their outputs; off: never")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kPlanning);
}

PlanRequest PlanFlags::request(MemoryMode memory) const {
  return {.memory = memory,
          .planner = &prefetch::find_planner(planner),
          .may_recompute = recompute == "auto"};
}

std::string check_budget(const std::string& text) {
  return complaint_of([&] { static_cast<void>(Budget::parse(text)); });
}

}  // namespace spillway::cli
