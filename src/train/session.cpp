#include "src/train/session.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <variant>

#include "src/run/step_space.h"
#include "um/error.h"

namespace spillway {
namespace {

um::ManagedOptions with_page(um::ManagedOptions options, um::Bytes page) {
  options.page = page;
  return options;
}

// Time of a step in which no run was under way.
std::optional<um::Nanoseconds> stalled_time(const std::optional<prefetch::Timeline>& timeline) {
  if (!timeline) return std::nullopt;
  um::Nanoseconds stalled{0};
  um::Nanoseconds previous_end{0};
  for (const prefetch::Interval& run : timeline->runs) {
    stalled += run.begin - previous_end;
    previous_end = run.end;
  }
  return stalled;
}

std::vector<std::byte*> addresses(const Step& step, const State& state,
                                  const GradientSums& gradients, const BatchStage& stage) {
  std::vector<std::byte*> all = state.addresses(step);
  gradients.place(step, all);
  stage.place(step, all);
  return all;
}

const LoadBatch& load_of(const Step& step) {
  return std::get<LoadBatch>(step.launches.front().operation);
}

// Null where the step's batch is not staged.
const LoadBatch* staged_load(const Step& step) { return step.staged ? &load_of(step) : nullptr; }

um::Bytes staged_bytes(const Workload& workload) {
  um::Bytes max;
  const auto add = [&](const Step& step) {
    if (step.staged) max = std::max(max, step.graph[*step.staged].size);
  };
  add(workload.evaluation());
  for (const RepeatedStep& part : workload.training_steps()) add(part.step);
  return max;
}

// The losses are parts of one mean.
void add(const StepReport& part, StepReport& whole) {
  whole.loss += part.loss;
  whole.correct += part.correct;
  whole.duration += part.duration;
  whole.stalled = whole.stalled && part.stalled
                      ? std::optional{*whole.stalled + *part.stalled}
                      : std::nullopt;  // a part of it would be no figure of the step
  if (!part.problem.empty()) whole.problem = part.problem;
  whole.counters += part.counters;
  whole.near_peak = std::max(whole.near_peak, part.near_peak);
}

}  // namespace

Session::Runner::Runner(const Step& step, const prefetch::StepLayout& layout, Session& session,
                        ExecutionContext& context, const std::stop_token& stop, bool may_repeat)
    : pinned{layout.graph, layout.block_sizes,
             addresses(step, session.state_, session.gradients_, session.stage_),
             session.space_.pinned_buffer()},
      memory{session.space_.make_memory(layout, pinned)},
      staged_load{spillway::staged_load(step)},
      executor{step,
               layout.plan,
               *context.backend,
               *memory,
               *context.compute,
               stop,
               may_repeat,
               [&session](std::uint32_t bucket) { session.shards_->exchange(bucket); },
               [&session] { return session.space_.counters(); }} {}

Session::Session(ExecutionContext& context, const Workload& workload, const Plans& plans,
                 MemoryMode mode, const um::ManagedOptions& space, const std::stop_token& stop,
                 const RankOptions& ranks)
    : loads_bytes_{load_of(workload.evaluation()).has_bytes},
      batch_memory_{staged_bytes(workload) > um::Bytes{} ? *std::pmr::new_delete_resource()
                                                         : context.backend->batch_memory()},
      ledger_{plans.budget},
      near_memory_{context.device->memory(), ledger_},
      state_{workload.training(), workload.page(), *context.backend, near_memory_},
      slices_{ranks.communicator, ranks.between_near_memory(), context.device->memory()},
      gradients_{workload.training(), near_memory_},
      stage_{context, staged_bytes(workload), near_memory_},
      evaluation_batch_{load_of(workload.evaluation()).x.batch},
      layouts_{layouts_of(workload, plans)},
      far_memory_{spillway::far_memory(layouts_, mode, workload.page())},
      space_{*context.device,
             mode,
             with_page(space, workload.page()),
             layouts(),
             workload.state_at_once(),
             near_memory_,
             ledger_},
      sequence_{workload.sequence()} {
  evaluation_ = std::make_unique<Runner>(workload.evaluation(), layouts_.back(), *this, context,
                                         stop, space.gpu.graph);
  for (std::size_t i = 0; i < workload.training_steps().size(); ++i) {
    const RepeatedStep& part = workload.training_steps()[i];
    training_.push_back({.runner = std::make_unique<Runner>(part.step, layouts_[i], *this, context,
                                                            stop, space.gpu.graph),
                         .batch = part.batch});
    batch_ += part.times * part.batch;
  }
  if (ranks.shards) shard_batches(workload, ranks);
  state_.divide_by(slices_);
  state_.reach_through([this](auto ids, um::Access access, const auto& use) {
    um::expects(!is_in_step_, "state of steps that came to their end");
    prefetch::StepMemory& memory = *training_.back().runner->memory;
    give_state_to(memory);
    memory.with_state(ids, access, use);
    near_peak_ = std::max(near_peak_, ledger_.peak());
  });
}

std::vector<const prefetch::StepLayout*> Session::layouts() const {
  std::vector<const prefetch::StepLayout*> all;
  for (const prefetch::StepLayout& layout : layouts_) all.push_back(&layout);
  return all;
}

// State that moves is with the step that ran last.
void Session::give_state_to(prefetch::StepMemory& memory) {
  if (holder_ == &memory) return;
  if (holder_ != nullptr) std::exchange(holder_, nullptr)->leave();
  memory.enter();
  holder_ = &memory;
}

void Session::shard_batches(const Workload& workload, const RankOptions& ranks) {
  const Step& last = workload.training();
  const std::vector<std::byte*> addresses = state_.addresses(last);
  std::vector<std::span<float>> statistics;
  for (const StateBlock& block : last.state) {
    if (block.role != StateRole::kStatistics) continue;
    for (const prefetch::DataId id : block.ids) {
      statistics.emplace_back(reinterpret_cast<float*>(addresses[static_cast<std::size_t>(id)]),
                              last.graph[id].size.count() / sizeof(float));
    }
  }
  batch_ = *ranks.shards * workload.sub_batches().size;
  shards_.emplace(shard_batch(ranks, batch_), ranks, gradients_.buckets(), std::move(statistics),
                  near_memory_);
}

std::optional<BatchPart> Session::own_samples() const {
  if (!shards_) return std::nullopt;
  return BatchPart{.first = shards_->batch().samples_before(),
                   .count = shards_->batch().own_samples()};
}

StepReport Session::train(const StepContext& context) {
  if (shards_) return train_shards(context);
  if (sequence_.size() > 1) return train_in_parts(context);
  Runner& runner = *training_.front().runner;
  Finished whole = run(runner, context, {.runner = &runner, .batch = context.next_batch});
  whole.report.counted = count_labels(*context.batch);
  if (whole.timeline) timeline_ = *std::move(whole.timeline);
  return whole.report;
}

StepReport Session::train_in_parts(StepContext context) {
  um::expects(context.batch != nullptr, "a batch to train on");
  context.counted_labels = count_labels(*context.batch);
  return run_parts(context);
}

StepReport Session::train_shards(StepContext context) {
  um::expects(context.batch != nullptr, "samples to train on");
  const auto begin = std::chrono::steady_clock::now();
  context.counted_labels = shards_->begin_batch(count_labels(*context.batch));
  context.samples_before = shards_->batch().samples_before();
  StepReport whole = run_parts(context);
  const ShardResult sum = shards_->end_batch();
  whole.loss = sum.loss;
  whole.correct = sum.correct;
  whole.duration = std::chrono::steady_clock::now() - begin;
  return whole;
}

// One sub-step after the other.
StepReport Session::run_parts(StepContext context) {
  StepReport whole{.counted = *context.counted_labels,
                   .learning_rate = context.learning_rate,
                   .stalled = um::Nanoseconds{0}};
  for (std::size_t i = 0; i < sequence_.size(); ++i) {
    const Part& part = training_[sequence_[i]];
    const Next next = i + 1 < sequence_.size()
                          ? Next{.runner = training_[sequence_[i + 1]].runner.get(),
                                 .batch = context.batch,
                                 .first = context.first_sample + part.batch}
                          : Next{.runner = training_[sequence_.front()].runner.get(),
                                 .batch = context.next_batch};
    const std::size_t shard = shards_ ? shards_->batch().own.first + i : 0;
    if (shards_) shards_->begin_shard(shard);
    Finished sub = run(*part.runner, context, next);
    if (shards_)
      shards_->end_shard(shard, {.loss = sub.report.loss, .correct = sub.report.correct});
    add(sub.report, whole);
    if (sub.timeline) timeline_ = *std::move(sub.timeline);
    context.first_sample += part.batch;
  }
  return whole;
}

StepReport Session::evaluate(const StepContext& context) {
  return run(*evaluation_, context, {.runner = evaluation_.get(), .batch = context.next_batch})
      .report;
}

Session::Finished Session::run(Runner& runner, const StepContext& context, const Next& next) {
  give_state_to(*runner.memory);
  near_peak_ = std::max(near_peak_, ledger_.peak());
  const um::Counters before = space_.counters();
  ledger_.reset_peak();
  const auto begin = std::chrono::steady_clock::now();
  if (runner.staged_load != nullptr) {
    stage_.expect(
        {.load = runner.staged_load, .batch = context.batch, .first = context.first_sample},
        {.load = next.runner->staged_load, .batch = next.batch, .first = next.first});
  }
  is_in_step_ = true;
  StepResult result = runner.executor.run(context, [&] {
    if (runner.staged_load != nullptr) stage_.loaded();
  });
  is_in_step_ = false;
  const StepReport report{.loss = result.loss,
                          .correct = result.correct,
                          .judged = std::move(result.judged),
                          .logits = std::move(result.logits),
                          .learning_rate = context.learning_rate,
                          .duration = std::chrono::steady_clock::now() - begin,
                          .stalled = stalled_time(result.timeline),
                          .counters = space_.counters() - before,
                          .near_peak = ledger_.peak(),
                          .problem = std::move(result.problem)};
  near_peak_ = std::max(near_peak_, report.near_peak);
  return {.report = report, .timeline = std::move(result.timeline)};
}

}  // namespace spillway
