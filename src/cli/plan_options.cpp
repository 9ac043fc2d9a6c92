#include "src/cli/plan_options.h"

#include "prefetch/planners/catalogue.h"

namespace spillway::cli {
namespace {

constexpr const char* kPlanning = "Planning";

std::string planner_help() {
  std::string text = "Strategy:";
  for (const auto& planner : prefetch::planners()) {
    text += "\n  " + std::string{planner->name()} + ": " + std::string{planner->description()};
  }
  return text;
}

}  // namespace

void PlanOptions::add_to(CLI::App& app) {
  app.add_option("--budget", budget,
                 "Near memory for everything: bytes (512MiB), a part of what the resident run "
                 "needs (40%), the smallest feasible (min), or a way from there (min+20%)")
      ->capture_default_str()
      ->group(kPlanning);
  app.add_option("--planner", planner, planner_help())->capture_default_str()->group(kPlanning);
  app.add_option("--recompute", recompute,
                 "auto: run cheap layers again where that beats moving their outputs; off: never")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kPlanning);
}

PlanRequest PlanOptions::request(MemoryMode memory) const {
  return {.memory = memory,
          .planner = &prefetch::find_planner(planner),
          .may_recompute = recompute == "auto"};
}

}  // namespace spillway::cli
