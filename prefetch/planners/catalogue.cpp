#include "prefetch/planners/catalogue.h"

#include <string>

#include "prefetch/planners/capacity.h"
#include "prefetch/planners/joint.h"
#include "prefetch/planners/on_demand.h"
#include "prefetch/planners/resident.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

std::vector<std::unique_ptr<const Planner>> make_all() {
  std::vector<std::unique_ptr<const Planner>> all;
  all.push_back(std::make_unique<Joint>());
  all.push_back(std::make_unique<Capacity>());
  all.push_back(std::make_unique<OnDemand>());
  all.push_back(std::make_unique<Resident>());
  return all;
}

}  // namespace

const std::vector<std::unique_ptr<const Planner>>& planners() {
  static const std::vector<std::unique_ptr<const Planner>> all = make_all();  // constant data
  return all;
}

const Planner& find_planner(std::string_view name) {
  std::string names;
  for (const auto& planner : planners()) {
    if (planner->name() == name) return *planner;
    names += (names.empty() ? "" : ", ") + std::string{planner->name()};
  }
  throw um::Error{"there is no planner called '" + std::string{name} + "'; there are " + names};
}

}  // namespace spillway::prefetch
