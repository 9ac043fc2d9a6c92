#include "prefetch/planners/catalogue.h"

#include <algorithm>
#include <string>

#include "prefetch/planners/autoswap.h"
#include "prefetch/planners/capacity.h"
#include "prefetch/planners/chain/dynprog.h"
#include "prefetch/planners/chain/greedy.h"
#include "prefetch/planners/chain/rotor.h"
#include "prefetch/planners/fractional.h"
#include "prefetch/planners/ibm_ooc.h"
#include "prefetch/planners/joint/joint.h"
#include "prefetch/planners/largest_first.h"
#include "prefetch/planners/modnn/modnn.h"
#include "prefetch/planners/on_demand.h"
#include "prefetch/planners/recompute.h"
#include "prefetch/planners/resident.h"
#include "prefetch/planners/superneurons/superneurons.h"
#include "prefetch/planners/tflms.h"
#include "prefetch/planners/vdnn/vdnn_all.h"
#include "prefetch/planners/vdnn/vdnn_conv.h"
#include "prefetch/planners/vdnn/vdnn_dyn.h"
#include "prefetch/planners/vdnn/vdnn_plus.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

std::vector<std::unique_ptr<const Planner>> make_all() {
  std::vector<std::unique_ptr<const Planner>> all;
  all.push_back(std::make_unique<Autoswap>());
  all.push_back(std::make_unique<Capacity>());
  all.push_back(std::make_unique<DynProg>());
  all.push_back(std::make_unique<Fractional>());
  all.push_back(std::make_unique<Greedy>());
  all.push_back(std::make_unique<IbmOoc>());
  all.push_back(std::make_unique<Joint>());
  all.push_back(std::make_unique<LargestFirst>());
  all.push_back(std::make_unique<Modnn>());
  all.push_back(std::make_unique<OnDemand>());
  all.push_back(std::make_unique<Recompute>());
  all.push_back(std::make_unique<Resident>());
  all.push_back(std::make_unique<Rotor>());
  all.push_back(std::make_unique<SuperNeurons>());
  all.push_back(std::make_unique<Tflms>());
  all.push_back(std::make_unique<VdnnAll>());
  all.push_back(std::make_unique<VdnnConv>());
  all.push_back(std::make_unique<VdnnDyn>());
  all.push_back(std::make_unique<VdnnPlus>());
  return all;
}

std::vector<std::unique_ptr<const Planner>> make_superneurons_variants() {
  std::vector<std::unique_ptr<const Planner>> all;
  for (unsigned parts = 0; parts < 16; ++parts) {
    all.push_back(
        std::make_unique<SuperNeurons>(SuperNeuronsOptions{.offload = (parts & 1U) != 0,
                                                           .tensor_cache = (parts & 2U) != 0,
                                                           .recompute = (parts & 4U) != 0,
                                                           .workspace = (parts & 8U) != 0}));
  }
  return all;
}

const Planner& find_variant(std::string_view name, std::string_view switches) {
  if (name != "superneurons") {
    throw um::Error{"planner " + std::string{name} +
                    " has no switches: write its name without a colon"};
  }
  static const auto all = make_superneurons_variants();  // constant data
  const SuperNeurons wanted{parse_superneurons_switches(switches)};
  return **std::ranges::find(all, wanted.name(), [](const auto& each) { return each->name(); });
}

}  // namespace

const std::vector<std::unique_ptr<const Planner>>& planners() {
  static const std::vector<std::unique_ptr<const Planner>> all = make_all();  // constant data
  return all;
}

const Planner& find_planner(std::string_view name) {
  std::string names;
  const std::size_t colon = name.find(':');
  const std::string_view switches = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  name = name.substr(0, colon);
  for (const auto& planner : planners()) {
    if (planner->name() == name)
      return colon == std::string_view::npos ? *planner : find_variant(name, switches);
    names += (names.empty() ? "" : ", ") + std::string{planner->name()};
  }
  throw um::Error{"there is no planner called '" + std::string{name} + "'; there are " + names};
}

}  // namespace spillway::prefetch
