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

StepOptions with_batch(StepOptions options, std::size_t batch) {
  options.batch = batch;
  return options;
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

}  // namespace

Bytes step_page(const prefetch::TaskGraph& graph, const SizeModel& size_model) {
  return std::max(prefetch::choose_page(graph), size_model.smallest_page());
}

Bytes run_page(const prefetch::TaskGraph& training, const Step& evaluation,
               const SizeModel& size_model) {
  return std::max(step_page(training, size_model), least_page(evaluation));
}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options)
    : Workload{network, size_model, options, prefetch::cut(options.batch, options.batch)} {}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options, const prefetch::BatchCut& batches)
    : Workload{network,
               size_model,
               options,
               all_of(options.batch, batches),
               make_program(network, size_model, options, all_of(options.batch, batches)),
               Bytes{}} {}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options, const MicroBatches& batches, Step training,
                   Bytes beside)
    : Workload{batches, std::move(training),
               make_evaluation_step(network, size_model, with_batch(options, batches.size)), beside,
               size_model} {}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const EvaluationOnly& only)
    : Workload{only,
               make_evaluation_step(network, size_model,
                                    {.batch = only.batch,
                                     .has_byte_images = only.has_byte_images,
                                     .gives_logits = only.gives_logits}),
               size_model} {}

Workload::Workload(const EvaluationOnly& only, Step evaluation, const SizeModel& size_model)
    : Workload{MicroBatches{.batch = only.batch, .size = only.batch},
               evaluation,
               evaluation,
               {},
               size_model} {}

std::unique_ptr<const Workload> Workload::with_moving_state(const SizeModel& size_model) const {
  Step training = training_;
  let_state_move(training);
  Step evaluation = evaluation_;
  let_state_move(evaluation);
  return std::unique_ptr<const Workload>{
      new Workload{batches_, std::move(training), std::move(evaluation), beside_, size_model}};
}

std::unique_ptr<const Workload> Workload::with_far_updates(const SizeModel& size_model) const {
  Step training = training_;
  update_far(training, page_);
  if (training.far_launches.empty()) return nullptr;
  return std::unique_ptr<const Workload>{
      new Workload{batches_, std::move(training), evaluation_, beside_, size_model}};
}

std::unique_ptr<const Workload> Workload::with_buckets(
    const SizeModel& size_model, const prefetch::BucketRule& rule,
    const std::function<Bytes(const Step& training)>& beside) const {
  Step training = training_;
  regroup_gradients(training, rule);
  const Bytes near = beside(training);
  return std::unique_ptr<const Workload>{
      new Workload{batches_, std::move(training), evaluation_, near, size_model}};
}

Workload::Workload(const MicroBatches& batches, Step training, Step evaluation, Bytes beside,
                   const SizeModel& size_model)
    : batches_{batches},
      training_{std::move(training)},
      beside_{beside},
      evaluation_{std::move(evaluation)},
      page_{run_page(training_.graph, evaluation_, size_model)},
      training_near_{near_of(training_.graph)},
      evaluation_near_{near_of(evaluation_.graph)} {
  expect_plannable(training_, batches_.own_samples());
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

Workload::Near Workload::near_of(const prefetch::TaskGraph& graph) const {
  const BlockSizes block_sizes{graph, page_};
  const Bytes always = block_sizes.pinned();
  return {.always = always,
          .small = always - pinned_state(graph, block_sizes),
          .need = near_need(graph, block_sizes)};
}

StepToPlan Workload::training_to_plan() const {
  return {.graph = training_.graph,
          .page = page_,
          .need = need_,
          .elsewhere = common_near_ - training_near_.always};
}

Bytes Workload::state_at_once() const { return largest_movable_state(training_, page_); }

Bytes Workload::training_budget(Bytes budget) const { return training_to_plan().budget(budget); }

Bytes Workload::evaluation_budget(Bytes budget) const {
  const Bytes pool = um::round_down(um::saturating_difference(budget, common_near_), page_);
  return evaluation_near_.always + pool;
}

Bytes Workload::run_budget(Bytes training_budget) const {
  return training_budget + training_to_plan().elsewhere;
}

}  // namespace spillway
