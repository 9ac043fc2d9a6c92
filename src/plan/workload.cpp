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
    if (block.lies_in) continue;
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
  return Bytes{std::bit_ceil(4 * step.graph[step.result].size.count() + 1)};
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

// Each kind so often as it is to run, one kind after the other.
ShardSteps in_a_row(std::vector<RepeatedStep> steps) {
  std::vector<std::size_t> sequence;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    sequence.insert(sequence.end(), steps[i].times, i);
  }
  return {.steps = std::move(steps), .sequence = std::move(sequence)};
}

}  // namespace

Bytes step_page(const prefetch::TaskGraph& graph, const SizeModel& size_model) {
  return std::max(prefetch::choose_page(graph), size_model.smallest_page());
}

Bytes run_page(const prefetch::TaskGraph& first, const Step& evaluation,
               const SizeModel& size_model) {
  return std::max(step_page(first, size_model), least_page(evaluation));
}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options)
    : Workload{network, size_model, options, prefetch::cut(options.batch, options.batch)} {}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options, const prefetch::SubBatches& batches)
    : Workload{batches, make_sub_steps(network, size_model, options, batches),
               make_evaluation_step(network, size_model, with_batch(options, batches.size)),
               size_model} {}

Workload::Workload(const nets::Network& network, const SizeModel& size_model,
                   const StepOptions& options, const ShardedBatch& batch, ShardSteps shards,
                   Bytes beside)
    : Workload{{.size = batch.shard_size(), .steps = batch.own.count()},
               std::move(shards),
               make_evaluation_step(network, size_model, with_batch(options, batch.shard_size())),
               beside,
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
    : Workload{prefetch::cut(only.batch, only.batch),
               {RepeatedStep{.step = evaluation, .times = 1, .batch = only.batch}},
               std::move(evaluation),
               size_model} {}

std::unique_ptr<const Workload> Workload::with_moving_state(const SizeModel& size_model) const {
  ShardSteps training{.steps = training_, .sequence = sequence_};
  for (RepeatedStep& part : training.steps) let_state_move(part.step);
  Step evaluation = evaluation_;
  let_state_move(evaluation);
  return std::unique_ptr<const Workload>{
      new Workload{batches_, std::move(training), std::move(evaluation), beside_, size_model}};
}

std::unique_ptr<const Workload> Workload::with_far_updates(const SizeModel& size_model) const {
  um::expects(training_.size() == 1, "a batch that is not cut");
  if (!training_.front().step.graph.exchanges.empty()) return nullptr;
  std::vector<RepeatedStep> training = training_;
  update_far(training.front().step, page_);
  if (training.front().step.far_launches.empty()) return nullptr;
  return std::unique_ptr<const Workload>{
      new Workload{batches_, std::move(training), evaluation_, size_model}};
}

std::unique_ptr<const Workload> Workload::with_exchanges(const SizeModel& size_model,
                                                         const prefetch::BucketRule& rule,
                                                         const OptimizerDivision& division) const {
  um::expects(training_.size() == 1, "a batch that is not cut");
  std::vector<RepeatedStep> training = training_;
  divide_updates(training.front().step, training_.front().step, size_model, division);
  exchange_gradients(training.front().step, rule);
  return std::unique_ptr<const Workload>{
      new Workload{batches_, std::move(training), evaluation_, size_model}};
}

std::unique_ptr<const Workload> Workload::with_buckets(
    const SizeModel& size_model, const prefetch::BucketRule& rule,
    const std::function<Bytes(const Step& last)>& beside) const {
  ShardSteps training{.steps = training_, .sequence = sequence_};
  Step& last = training.steps.back().step;
  regroup_gradients(last, rule);
  const Bytes near = beside(last);
  return std::unique_ptr<const Workload>{
      new Workload{batches_, std::move(training), evaluation_, near, size_model}};
}

Workload::Workload(const prefetch::SubBatches& batches, std::vector<RepeatedStep> training,
                   Step evaluation, const SizeModel& size_model)
    : Workload{batches, in_a_row(std::move(training)), std::move(evaluation), {}, size_model} {}

Workload::Workload(const prefetch::SubBatches& batches, ShardSteps training, Step evaluation,
                   Bytes beside, const SizeModel& size_model)
    : batches_{batches},
      training_{std::move(training.steps)},
      sequence_{std::move(training.sequence)},
      beside_{beside},
      evaluation_{std::move(evaluation)},
      page_{run_page(training_.front().step.graph, evaluation_, size_model)},
      evaluation_near_{near_of(evaluation_.graph)} {
  for (const RepeatedStep& part : training_) expect_plannable(part.step, part.batch);
  Bytes small = evaluation_near_.small;
  for (const RepeatedStep& part : training_) {
    training_near_.push_back(near_of(part.step.graph));
    small = std::max(small, training_near_.back().small);
  }
  // All training steps have the same state, of which the evaluation's is a part.
  common_near_ = beside_ + training_near_.front().always - training_near_.front().small + small;

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
  need_.smallest = std::max(max(&NearNeed::smallest), common_near_ + state_at_once());
}

Workload::Near Workload::near_of(const prefetch::TaskGraph& graph) const {
  const BlockSizes block_sizes{graph, page_};
  const Bytes always = block_sizes.pinned();
  return {.always = always,
          .small = always - pinned_state(graph, block_sizes),
          .need = near_need(graph, block_sizes)};
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

Bytes Workload::state_at_once() const {
  return largest_movable_state(training_.back().step, page_);
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
