#include "src/workload.h"

#include <algorithm>

#include "prefetch/occupancy.h"

namespace spillway {
namespace {

using prefetch::NearNeed;
using prefetch::Occupancy;
using um::Bytes;

Bytes state_size(const prefetch::TaskGraph& graph) {
  Bytes size;
  for (const prefetch::DataBlock& block : graph.data) {
    if (block.kind == prefetch::DataKind::kState) {
      size += um::round_up(block.size, prefetch::kNearAlignment);
    }
  }
  return size;
}

}  // namespace

Bytes step_page(const prefetch::TaskGraph& graph, const Sizing& sizing) {
  return std::max(prefetch::choose_page(graph), sizing.smallest_page());
}

Workload::Workload(const nets::Network& network, const Sizing& sizing, const StepOptions& options)
    : training_{make_training_step(network, sizing, options)},
      evaluation_{make_evaluation_step(network, sizing, options)},
      page_{step_page(training_.graph, sizing)} {
  const Occupancy training{training_.graph, page_};
  const Occupancy evaluation{evaluation_.graph, page_};
  training_near_ = training.always_near();
  evaluation_near_ = evaluation.always_near();
  const Bytes training_small = training_near_ - state_size(training_.graph);
  const Bytes evaluation_small = evaluation_near_ - state_size(evaluation_.graph);
  common_near_ = training_near_ + um::saturating_difference(evaluation_small, training_small);

  need_ = near_need(training_.graph, training);
  const NearNeed other = near_need(evaluation_.graph, evaluation);
  const auto both = [&](Bytes NearNeed::*need) {
    return common_near_ + std::max(need_.*need - training_near_, other.*need - evaluation_near_);
  };
  need_.resident = both(&NearNeed::resident);
  need_.roomy = both(&NearNeed::roomy);
  need_.smallest = both(&NearNeed::smallest);
}

Bytes Workload::training_budget(Bytes budget) const {
  return um::saturating_difference(budget, common_near_ - training_near_);
}

Bytes Workload::evaluation_budget(Bytes budget) const {
  const Bytes pool = um::round_down(um::saturating_difference(budget, common_near_), page_);
  return evaluation_near_ + pool;
}

Bytes Workload::run_budget(Bytes training_budget) const {
  return training_budget + (common_near_ - training_near_);
}

}  // namespace spillway
