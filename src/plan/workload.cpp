#include "src/plan/workload.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::BlockSizes;
using prefetch::NearNeed;
using um::Bytes;

// Of the state that is always near.
Bytes pinned_state(const prefetch::TaskGraph& graph, const BlockSizes& block_sizes) {
  Bytes size;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const prefetch::DataBlock& block = graph.data[i];
    if (block_sizes.host_of(graph, prefetch::DataId(i))) continue;
    if (block.kind == prefetch::DataKind::kState && !block_sizes.is_movable(prefetch::DataId(i))) {
      size += um::round_up(block.size, prefetch::kNearAlignment);
    }
  }
  return size;
}

Bytes largest_movable_state(const Step& step, Bytes page) {
  const BlockSizes block_sizes{step.graph, page};
  Bytes largest;
  for (const StateBlock& block : step.state) {
    Bytes size;
    for (const prefetch::DataId id : block.ids) {
      if (block_sizes.is_movable(id)) size += block_sizes.size(id);
    }
    largest = std::max(largest, size);
  }
  return largest;
}

// The result of a step is read when the step has ended: it must be too small to be moved
// (BlockSizes), which what an evaluation says of each of many images would not be in tiny pages.
Bytes least_page(const Step& step) {
  return Bytes{std::bit_ceil(4 * step.graph[step.results.front()].size.count() + 1)};
}

// Beyond this no sum of sizes or times is sure to be a number, and no table of pages to fit in RAM.
void expect_plannable(const Step& step, std::size_t batch) {
  constexpr Bytes kMostOfAStep{1ULL << 50U};
  Bytes all;
  for (const prefetch::DataBlock& block : step.graph.data) {
    all = std::min(all, kMostOfAStep) + std::min(block.size, kMostOfAStep);
  }
  if (all <= kMostOfAStep) return;
  throw um::Error{"a step of batch " + std::to_string(batch) + " has more than " +
                  um::to_string(kMostOfAStep) +
                  " of tensors, which is more than can be planned; use a smaller --batch"};
}

MicroBatches whole_unless_cut(const std::optional<MicroBatches>& batches, std::size_t batch) {
  return batches.value_or(all_of(batch, prefetch::cut(batch, batch)));
}

}  // namespace

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options, const std::optional<MicroBatches>& batches,
                   const Features& features, const NearMemory& beside)
    : Workload{whole_unless_cut(batches, options.batch),
               make_steps(network, size_model, options, whole_unless_cut(batches, options.batch)),
               features, beside, size_model} {}

Workload::Workload(const MicroBatches& batches, Steps plain, const Features& features,
                   const NearMemory& beside, const SizeModel& size_model)
    : batches_{batches},
      features_{features},
      near_memory_{beside},
      plain_{std::move(plain)},
      steps_{with_features(plain_, features, size_model)},
      beside_{beside ? beside(training()) : Bytes{}},
      page_{std::max(step_page(training().graph, size_model), least_page(evaluation()))},
      training_near_{near_of(training().graph)},
      evaluation_near_{near_of(evaluation().graph)} {
  expect_plannable(training(), batches_.own_samples());
  // The state of the evaluation is a part of the training's.
  const Near& near = training_near_;
  common_near_ = beside_ + near.always - near.small + std::max(near.small, evaluation_near_.small);

  need_ = near.need;
  const auto max = [&](Bytes NearNeed::*need) {
    return common_near_ + std::max(near.need.*need - near.always,
                                   evaluation_near_.need.*need - evaluation_near_.always);
  };
  need_.resident = max(&NearNeed::resident);
  need_.peak_with_workspace = max(&NearNeed::peak_with_workspace);
  need_.smallest = std::max(max(&NearNeed::smallest), common_near_ + state_at_once());
}

Workload::Steps Workload::make_steps(const nets::Network& network, const SizeModel& size_model,
                                     const StepOptions& options, const MicroBatches& batches) {
  StepOptions of_evaluation = options;
  of_evaluation.batch = batches.size;
  return {
      .training = std::make_shared<const Step>(make_program(network, size_model, options, batches)),
      .evaluation =
          std::make_shared<const Step>(make_evaluation_step(network, size_model, of_evaluation))};
}

Workload::Steps Workload::with_features(const Steps& plain, const Features& features,
                                        const SizeModel& size_model) {
  const auto change = [&](const Step& step, const Features& own) {
    Step changed = step;
    apply(own, size_model, least_page(*plain.evaluation), changed);
    return std::make_shared<const Step>(std::move(changed));
  };
  Steps steps = plain;
  const bool has_movable_state = features.state != StatePlace::kNear;
  if (has_movable_state || features.buckets) steps.training = change(*plain.training, features);
  if (has_movable_state) {
    steps.evaluation = change(*plain.evaluation, Features{}.with(StatePlace::kMovable));
  }
  return steps;
}

std::unique_ptr<const Workload> Workload::of_evaluation(const nets::Network& network,
                                                        const SizeModel& size_model,
                                                        const StepOptions& options) {
  const auto step =
      std::make_shared<const Step>(make_evaluation_step(network, size_model, options));
  return std::unique_ptr<const Workload>{
      new Workload{MicroBatches{.batch = options.batch, .size = options.batch},
                   {.training = step, .evaluation = step},
                   {},
                   {},
                   size_model}};
}

std::unique_ptr<const Workload> Workload::with(const SizeModel& size_model,
                                               const Features& features) const {
  std::unique_ptr<const Workload> other{
      new Workload{batches_, plain_, features, near_memory_, size_model}};
  const bool has_no_update =
      features.state == StatePlace::kUpdatedFar && other->training().far_launches.empty();
  return has_no_update ? nullptr : std::move(other);
}

Workload::Near Workload::near_of(const prefetch::TaskGraph& graph) const {
  const BlockSizes block_sizes{graph, page_};
  const Bytes always = block_sizes.pinned();
  return {.always = always,
          .small = always - pinned_state(graph, block_sizes),
          .need = near_need(graph, block_sizes)};
}

StepToPlan Workload::training_to_plan() const {
  return {.graph = training().graph,
          .page = page_,
          .need = need_,
          .elsewhere = common_near_ - training_near_.always};
}

Bytes Workload::state_at_once() const { return largest_movable_state(training(), page_); }

Bytes Workload::training_budget(Bytes budget) const { return training_to_plan().budget(budget); }

Bytes Workload::evaluation_budget(Bytes budget) const {
  const Bytes pool = um::round_down(um::saturating_difference(budget, common_near_), page_);
  return evaluation_near_.always + pool;
}

Bytes Workload::run_budget(Bytes training_budget) const {
  return training_budget + training_to_plan().elsewhere;
}

}  // namespace spillway
