#include "prefetch/planners/catalogue.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "prefetch/planners/chain/chain_planners.h"
#include "prefetch/planners/joint/joint_search.h"
#include "prefetch/planners/modnn/modnn.h"
#include "prefetch/planners/strategies.h"
#include "prefetch/planners/superneurons/superneurons.h"
#include "prefetch/planners/vdnn/vdnn.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using Strategy = std::function<std::variant<Plan, Infeasible>(const Problem&)>;

// A strategy with the name that its plans carry.
class NamedStrategy final : public Planner {
 public:
  NamedStrategy(std::string name, std::string_view description, Strategy strategy,
                SubBatchRule rule = SubBatchRule::kSearch)
      : name_{std::move(name)},
        description_{description},
        strategy_{std::move(strategy)},
        rule_{rule} {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view description() const override { return description_; }
  [[nodiscard]] SubBatchRule sub_batch_rule() const override { return rule_; }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override {
    auto result = strategy_(problem);
    if (auto* const plan = std::get_if<Plan>(&result)) plan->planner = name_;
    return result;
  }

 private:
  std::string name_;
  std::string_view description_;
  Strategy strategy_;
  SubBatchRule rule_;
};

NamedStrategy superneurons(const SuperNeuronsOptions& options) {
  return {superneurons_name(options),
          "offload convolutions' outputs, run cheap layers again (SuperNeurons); parts switched "
          "off: superneurons:no-offload,no-cache,no-recompute,no-workspace",
          [=](const Problem& problem) { return plan_superneurons(problem, options); }};
}

std::vector<NamedStrategy> make_all() {
  return {
      {"autoswap", "swap blocks by a weighted sum of four priority scores; best weights (AutoSwap)",
       plan_autoswap},
      {"capacity",
       "keeps near what fits, moves the rest in whole blocks as early as there is room "
       "(UM-Chainer)",
       plan_capacity},
      {"dynprog", "offload the activations that a dynamic program chooses (Beaumont et al. 5)",
       plan_dynprog},
      {"fractional",
       "moves just the parts of blocks that do not fit, the longest unused first "
       "(Beaumont et al., section 4)",
       plan_fractional},
      {"greedy", "offload the first activations, as many as do not fit (Beaumont et al. 4)",
       plan_greedy},
      {"ibm-ooc", "swap out after every layer's forward pass, in one layer ahead (IBM's Chainer)",
       plan_ibm_ooc},
      {"joint",
       "moves parts of blocks, runs tasks again and picks algorithms, all chosen together "
       "(Spillway's own)",
       plan_joint},
      {"largest-first", "offload everything saved, then keep the largest blocks that fit",
       plan_largest_first},
      {"modnn",
       "virtual execution: offload what delays least, prefetch just in time (moDNN Alg. 1)",
       plan_modnn, SubBatchRule::kWorkingSet},
      {"on-demand",
       "no foresight: page faults alone, each for one page of the plan, which is 2 MiB, or down "
       "to 4 KiB where tensors are small (managed); or swap when needed (copy)",
       plan_on_demand},
      {"recompute", "moves nothing; drops what is cheap to compute again until the rest fits",
       plan_recompute},
      {"resident", "moves nothing; needs a budget that holds the whole step", plan_resident},
      {"rotor", "moves nothing; recomputes, optimally for a chain (rotor, RR-9302)", plan_rotor},
      superneurons({}),
      {"tflms", "offload the first n saved tensors, prefetch d layers ahead; best n and d (TFLMS)",
       plan_tflms},
      {"vdnn-all", "offload the input of every layer, layer by layer (vDNN)", plan_vdnn_all},
      {"vdnn-conv", "offload the inputs of convolutions alone, layer by layer (vDNN)",
       plan_vdnn_conv},
      {"vdnn-dyn", "nothing, convolutions or all offloaded, as the budget demands (vDNN)",
       plan_vdnn_dyn},
      // moDNN section V-B does not say which of vDNN's policies it extends: here the dynamic one.
      {"vdnn+", "vdnn-dyn with sub-batches by working set (moDNN V-B; see --sub-batch)",
       plan_vdnn_dyn, SubBatchRule::kWorkingSet},
  };
}

std::vector<NamedStrategy> make_superneurons_variants() {
  std::vector<NamedStrategy> all;
  for (unsigned parts = 0; parts < 16; ++parts) {
    all.push_back(superneurons({.offload = (parts & 1U) != 0,
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
  return *std::ranges::find(all, superneurons_name(parse_superneurons_switches(switches)),
                            &Planner::name);
}

}  // namespace

const std::vector<std::unique_ptr<const Planner>>& planners() {
  static const std::vector<std::unique_ptr<const Planner>> all = [] {  // constant data
    std::vector<std::unique_ptr<const Planner>> result;
    for (NamedStrategy& strategy : make_all()) {
      result.push_back(std::make_unique<NamedStrategy>(std::move(strategy)));
    }
    return result;
  }();
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
