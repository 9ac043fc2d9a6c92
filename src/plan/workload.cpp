#include "src/plan/workload.h"

#include <algorithm>

#include "prefetch/block_sizes.h"

namespace spillway {
namespace {

using prefetch::BlockSizes;
using prefetch::NearNeed;
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

StepOptions with_batch(StepOptions options, std::size_t batch) {
  options.batch = batch;
  return options;
}

}  // namespace

Bytes step_page(const prefetch::TaskGraph& graph, const SizeModel& size_model) {
  return std::max(prefetch::choose_page(graph), size_model.smallest_page());
}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options)
    : Workload{network, size_model, options, prefetch::cut(options.batch, options.batch)} {}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options, const prefetch::SubBatches& batches)
    : batches_{batches},
      training_{make_sub_steps(network, size_model, options, batches)},
      evaluation_{make_evaluation_step(network, size_model, with_batch(options, batches.size))},
      page_{step_page(training_.front().step.graph, size_model)},
      evaluation_near_{near_of(evaluation_.graph)} {
  Bytes small = evaluation_near_.small;
  for (const RepeatedStep& part : training_) {
    training_near_.push_back(near_of(part.step.graph));
    small = std::max(small, training_near_.back().small);
  }
  // All training steps have the same state, of which the evaluation's is a part.
  common_near_ = training_near_.front().always - training_near_.front().small + small;

  const auto smallest_pool = [](const Near& near) { return near.need.smallest - near.always; };
  neediest_ = static_cast<std::size_t>(std::ranges::max_element(training_near_, {}, smallest_pool) -
                                       training_near_.begin());
  need_ = training_near_[neediest_].need;
  const auto max = [&](Bytes NearNeed::*need) {
    Bytes pool = evaluation_near_.need.*need - evaluation_near_.always;
    for (const Near& near : training_near_) pool = std::max(pool, near.need.*need - near.always);
    return common_near_ + pool;
  };
  need_.resident = max(&NearNeed::resident);
  need_.peak_with_workspace = max(&NearNeed::peak_with_workspace);
  need_.smallest = max(&NearNeed::smallest);
}

Workload::Near Workload::near_of(const prefetch::TaskGraph& graph) const {
  const BlockSizes block_sizes{graph, page_};
  const Bytes always = block_sizes.pinned();
  return {
      .always = always, .small = always - state_size(graph), .need = near_need(graph, block_sizes)};
}

StepToPlan Workload::training_to_plan(std::size_t index) const {
  const Near& near = training_near_[index];
  NearNeed need = need_;
  need.largest_task = near.need.largest_task;
  return {.graph = training_[index].step.graph,
          .page = page_,
          .need = need,
          .elsewhere = common_near_ - near.always};
}

Bytes Workload::training_budget(Bytes budget) const { return training_to_plan().budget(budget); }

Bytes Workload::evaluation_budget(Bytes budget) const {
  const Bytes pool = um::round_down(um::saturating_difference(budget, common_near_), page_);
  return evaluation_near_.always + pool;
}

Bytes Workload::run_budget(Bytes training_budget) const {
  return training_budget + training_to_plan().elsewhere;
}

}  // namespace spillway
