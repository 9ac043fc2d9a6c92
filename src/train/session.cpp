#include "src/train/session.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

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

um::Bytes staged_bytes(const Workload& workload) {
  um::Bytes max;
  for (const Step* const step : {&workload.evaluation(), &workload.training()}) {
    if (step->staged) max = std::max(max, step->graph[*step->staged].size);
  }
  return max;
}

}  // namespace

Session::Runner::Runner(const Step& step, const prefetch::StepLayout& layout, Session& session,
                        ExecutionContext& context, const std::stop_token& stop, bool may_repeat)
    : pinned{layout.graph, layout.block_sizes, session.addresses(step),
             session.space_.pinned_buffer()},
      memory{session.space_.make_memory(layout, pinned)},
      staged_load{step.staged ? std::optional{load_of(step).staged()} : std::nullopt},
      executor{step,
               layout.plan,
               *context.backend,
               *memory,
               *context.compute,
               stop,
               may_repeat,
               [&session](std::uint32_t bucket) { session.rank_.exchange(bucket); },
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
      batches_{workload.micro_batches()},
      rank_{batches_, ranks, workload.training(), state_.addresses(workload.training()),
            near_memory_},
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
             ledger_} {
  um::expects(workload.training().statistics.empty() || ranks.device_communicator ||
                  context.device->memory_facts().is_host,
              "a device communicator for statistics of micro-batches on a GPU");
  const auto make = [&](const Step& step, const prefetch::StepLayout& layout) {
    return std::make_unique<Runner>(step, layout, *this, context, stop, space.gpu.graph);
  };
  evaluation_ = make(workload.evaluation(), layouts_.back());
  training_ = make(workload.training(), layouts_.front());
  state_.divide_by(slices_);
  state_.reach_through([this](auto ids, um::Access access, const auto& use) {
    um::expects(!is_in_step_, "state of steps that came to their end");
    prefetch::StepMemory& memory = *training_->memory;
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

std::vector<std::byte*> Session::addresses(const Step& step) const {
  std::vector<std::byte*> all = state_.addresses(step);
  rank_.place(step, all);
  stage_.place(step, all);
  return all;
}

std::optional<BatchPart> Session::own_samples() const {
  if (batches_.own.count() == batches_.count()) return std::nullopt;
  return BatchPart{.first = batches_.samples_before(), .count = batches_.own_samples()};
}

StepReport Session::train(const StepContext& context) {
  um::expects(context.batch != nullptr, "a batch to train on");
  const auto begin = std::chrono::steady_clock::now();
  StepContext own = context;
  own.counted_labels = rank_.begin_batch(count_labels(*context.batch));
  own.samples_before = batches_.samples_before();
  auto [report, result] = run(*training_, own);
  const StepLoss sum = rank_.end_batch(result.losses);
  report.loss = sum.loss;
  report.correct = sum.correct;
  report.counted = *own.counted_labels;
  report.duration = std::chrono::steady_clock::now() - begin;
  if (result.timeline) timeline_ = *std::move(result.timeline);
  return report;
}

StepReport Session::evaluate(const StepContext& context) {
  auto [report, result] = run(*evaluation_, context);
  report.loss = result.losses.front().loss;
  report.correct = result.losses.front().correct;
  report.judged = std::move(result.judged);
  report.logits = std::move(result.logits);
  return report;
}

Session::Finished Session::run(Runner& runner, const StepContext& context) {
  give_state_to(*runner.memory);
  near_peak_ = std::max(near_peak_, ledger_.peak());
  const um::Counters before = space_.counters();
  ledger_.reset_peak();
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<LoadBatch>& load = runner.staged_load;
  if (load) {
    stage_.expect({.load = *load, .batch = context.batch},
                  {.load = *load, .batch = context.next_batch});
  }
  is_in_step_ = true;
  StepResult result = runner.executor.run(context, [&] {
    if (load) stage_.loaded();
  });
  is_in_step_ = false;
  const StepReport report{.learning_rate = context.learning_rate,
                          .duration = std::chrono::steady_clock::now() - begin,
                          .stalled = stalled_time(result.timeline),
                          .counters = space_.counters() - before,
                          .near_peak = ledger_.peak(),
                          .problem = std::move(result.problem)};
  near_peak_ = std::max(near_peak_, report.near_peak);
  return {.report = report, .result = std::move(result)};
}

}  // namespace spillway
