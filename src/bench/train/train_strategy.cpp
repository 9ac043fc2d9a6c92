#include "src/bench/train/train_strategy.h"

#include "prefetch/planners/catalogue.h"

namespace spillway {

TrainStrategy resident_strategy() { return {.name = "resident", .memory = MemoryMode::kResident}; }

TrainStrategy planner_strategy(std::string_view name, MemoryMode memory) {
  const prefetch::Planner& planner = prefetch::find_planner(name);
  return {.name = std::string{planner.name()}, .memory = memory, .planner = &planner};
}

TrainStrategy find_train_strategy(std::string_view name) {
  if (name == "resident") return resident_strategy();
  if (name != "copy") return planner_strategy(name);
  TrainStrategy strategy = planner_strategy("joint", MemoryMode::kCopy);
  strategy.name = "copy";
  return strategy;
}

}  // namespace spillway
