#include "src/bench/train/train_strategy.h"

#include <filesystem>

#include "prefetch/planners/catalogue.h"
#include "um/error.h"

namespace spillway {

PlanRequest TrainStrategy::request() const {
  return {.memory = memory,
          .planner = plan_file.empty() ? planner : &prefetch::find_planner("joint")};
}

TrainStrategy resident_strategy() { return {.name = "resident", .memory = MemoryMode::kResident}; }

TrainStrategy planner_strategy(std::string_view name, MemoryMode memory) {
  const prefetch::Planner& planner = prefetch::find_planner(name);
  return {.name = std::string{planner.name()}, .memory = memory, .planner = &planner};
}

TrainStrategy plan_file_strategy(std::string_view text) {
  constexpr std::string_view kCopy = "copy:";
  const bool is_copied = text.starts_with(kCopy);
  const std::filesystem::path path{is_copied ? text.substr(kCopy.size()) : text};
  if (!std::filesystem::is_regular_file(path)) {
    throw um::Error{"there is no plan " + path.string() + "; spillway plan --out writes one"};
  }
  return {.name = (is_copied ? std::string{kCopy} : std::string{}) + path.filename().string(),
          .memory = is_copied ? MemoryMode::kCopy : MemoryMode::kManaged,
          .plan_file = path.string()};
}

TrainStrategy find_train_strategy(std::string_view name) {
  if (name == "resident") return resident_strategy();
  if (name != "copy") return planner_strategy(name);
  TrainStrategy strategy = planner_strategy("joint", MemoryMode::kCopy);
  strategy.name = "copy";
  return strategy;
}

}  // namespace spillway
