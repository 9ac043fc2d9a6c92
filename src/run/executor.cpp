#include "src/run/executor.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway {

using prefetch::Position;
using prefetch::TaskRun;

namespace {

// The step's first runs, which load the batch and wait for no move, are not part of what is
// repeated: where no other run loads, their source may be overwritten when they have ended.
Position leading_loads(const Step& step, const prefetch::Plan& plan) {
  Position loads = 0;
  const auto loads_batch = [&](const TaskRun& run) {
    return run.after == prefetch::Progress{.runs = run.after.runs} &&
           std::holds_alternative<LoadBatch>(
               step.launches[static_cast<std::size_t>(run.task)].operation);
  };
  while (loads < plan.runs.size() && loads_batch(plan.runs[loads])) ++loads;
  return loads;
}

// The run behind the last one that loads a part of the batch.
Position find_last_load(const Step& step, const prefetch::Plan& plan) {
  const auto loads_batch = [&](const TaskRun& run) {
    return std::holds_alternative<LoadBatch>(
        step.launches[static_cast<std::size_t>(run.task)].operation);
  };
  const auto last = std::ranges::find_if(plan.runs.rbegin(), plan.runs.rend(), loads_batch);
  return static_cast<Position>(plan.runs.rend() - last);
}

// Timing costs a GPU two events a run. The first step of all is slower than others, so the second
// counts too.
bool are_times_due(const um::Stream& stream, std::uint64_t step) {
  return stream.has_free_notices() || step < 2 || step % Executor::kStepsPerTimeline == 0;
}

}  // namespace

Executor::Executor(const Step& step, const prefetch::Plan& plan, const Backend& backend,
                   prefetch::StepMemory& memory, um::Stream& stream, std::stop_token stop,
                   bool may_repeat, prefetch::ExchangeThread::Exchange exchange, Counts counts)
    : step_{step},
      plan_{plan},
      backend_{backend},
      memory_{memory},
      stream_{stream},
      stop_{std::move(stop)},
      runner_{plan, memory, stream},
      exchange_{std::move(exchange)},
      counts_{plan.residency == prefetch::Residency::kOnDemand && stream.has_free_notices()
                  ? std::move(counts)
                  : Counts{}},
      far_updates_{step, backend, memory},
      loads_{leading_loads(step, plan)},
      last_load_{find_last_load(step, plan)},
      kernels_(step.launches.size()) {
  // A repeated step waits neither for the processor nor for other ranks, and reads no batch in RAM.
  may_repeat = may_repeat && plan.far_runs.empty() && plan.exchanges.empty() &&
               (step.staged || last_load_ == loads_);
  if (may_repeat && memory.fixed_places() != nullptr) lanes_ = stream.make_lanes();
  if (lanes_ != nullptr) given_.emplace(plan, *memory.fixed_places(), *lanes_);
  stream_.enqueue([&] {
    for (const TaskRun& run : plan_.runs) {
      const auto task = static_cast<std::size_t>(run.task);
      if (kernels_[task] != nullptr) continue;
      kernels_[task] = backend.prepare(step_.launches[task].operation,
                                       step_.graph[run.task].algorithms[run.algorithm].name);
    }
    if (given_) postpone_updates();
  });
  stream_.synchronize();
}

// An update all of whose operands have places of their own the whole step long may as well be made
// at its end: nothing reads what it writes, and nothing else takes its places.
void Executor::postpone_updates() {
  is_postponed_.assign(plan_.runs.size(), false);
  if (std::ranges::any_of(step_.launches, [](const Launch& launch) {
        return std::holds_alternative<AverageParameters>(launch.operation);
      })) {
    return;  // averages read what updates write
  }
  const prefetch::BlockSizes block_sizes{step_.graph, plan_.page};
  std::vector<UpdateParameters> updates;
  for (Position position = 0; position < plan_.runs.size(); ++position) {
    const prefetch::TaskId task = plan_.runs[position].task;
    const Launch& update = step_.launches[static_cast<std::size_t>(task)];
    const auto* const operation = std::get_if<UpdateParameters>(&update.operation);
    if (operation == nullptr) continue;
    if (std::ranges::any_of(update.operands,
                            [&](prefetch::DataId id) { return block_sizes.is_movable(id); })) {
      continue;
    }
    is_postponed_[position] = true;
    updates.push_back(*operation);
  }
  if (updates.size() > 1) postponed_ = backend_.prepare_updates(updates);
  if (postponed_ == nullptr) is_postponed_.assign(plan_.runs.size(), false);
}

void Executor::launch_postponed(const StepContext& context) {
  operands_.clear();
  for (Position position = 0; position < plan_.runs.size(); ++position) {
    if (!is_postponed_[position]) continue;
    const Places places = fixed(position);
    const auto task = static_cast<std::size_t>(plan_.runs[position].task);
    for (const prefetch::DataId id : step_.launches[task].operands) {
      operands_.push_back(places.block(id));
    }
  }
  stream_.label("updates");
  postponed_->run({.operands = operands_, .context = &context});
  stream_.label({});
}

StepResult Executor::run(const StepContext& context, const std::function<void()>& on_loaded) {
  StepResult result;
  on_loaded_ = on_loaded;
  takes_times_ = are_times_due(stream_, steps_++);
  stream_.enqueue([&] { run_all(context, result); });
  stream_.synchronize();
  return result;
}

void Executor::run_all(const StepContext& context, StepResult& result) {
  if (stop_.stop_requested()) throw Interrupted{};
  backend_.begin_step(context);
  if (given_) {
    give_ahead(context, result);
  } else {
    walk(context, result);
  }
}

void Executor::walk(const StepContext& context, StepResult& result) {
  const auto launch = [&](Position position) {
    const auto block = [this](prefetch::DataId id) { return memory_.address(id); };
    run_one(position, context, {.block = block, .workspace = memory_.workspace()});
  };
  const prefetch::StepRunner::Beside beside{
      .far_update = [&](std::uint32_t far_update) { far_updates_.run(far_update, context); },
      .exchange = exchange_};
  faults_.clear();
  if (takes_times_) {
    result.timeline = runner_.run(launch, beside);
    result.timeline->faults = faults_;
  } else {
    runner_.run_untimed(launch, beside);
  }
  read_result(result);
}

Executor::Places Executor::fixed(Position position) {
  const prefetch::FixedPlaces& places = *memory_.fixed_places();
  return {
      .block = [&places, position](prefetch::DataId id) { return places.address(position, id); },
      .workspace = places.workspace(position)};
}

void Executor::give_ahead(const StepContext& context, StepResult& result) {
  const auto launch = [&](Position position) { run_one(position, context, fixed(position)); };
  if (takes_times_) {
    given_->run(launch);
    read_result(result);
    result.timeline = given_->timeline();
    // Not at the first step, which has its kernels loaded.
    if (steps_ > 1 && !given_->has_kept()) result.problem = keep(context);
    return;
  }
  for (Position position = 0; position < loads_; ++position) launch(position);
  given_->repeat();
  if (last_load_ > loads_) on_loaded_();
  read_result(result);
}

// What keeps the step from being repeated; then it is walked from now on. The step that was done is
// not the worse for it.
std::string Executor::keep(const StepContext& context) {
  try {
    given_->keep(loads_, [&](Position position) {
      if (!is_postponed_[position]) launch(position, context, fixed(position));
      if (postponed_ && position + 1 == plan_.runs.size()) launch_postponed(context);
    });
    return {};
  } catch (const um::Error& error) {
    given_.reset();
    lanes_.reset();
    return std::string{"steps are launched anew each time: no CUDA graph could be made of them: "} +
           error.what();
  }
}

// So few floats are too small to be moved (Workload::page), and nothing has overwritten them.
void Executor::read_result(StepResult& result) {
  static_assert(sizeof(StepLoss) == 2 * sizeof(float));
  std::byte* made = nullptr;
  const auto read_next = [&](std::span<std::byte> bytes) {
    if (bytes.empty()) return;
    stream_.read({made, bytes.size()}, bytes);
    made += bytes.size();
  };
  for (const prefetch::DataId id : step_.results) {
    made = memory_.address(id);
    read_next(std::as_writable_bytes(std::span{&result.losses.emplace_back(), 1}));
  }
  result.judged.resize(step_.judged_samples);
  result.logits.resize(step_.given_logits);
  read_next(std::as_writable_bytes(std::span{result.judged}));
  read_next(std::as_writable_bytes(std::span{result.logits}));
}

void Executor::run_one(Position position, const StepContext& context, const Places& places) {
  if (stop_.stop_requested()) throw Interrupted{};
  launch_counted(position, context, places);
  if (position + 1 == last_load_) on_loaded_();
}

// A kernel of such a stream has ended when its launch returns.
void Executor::launch_counted(Position position, const StepContext& context, const Places& places) {
  if (!counts_ || !takes_times_) return launch(position, context, places);
  const um::Counters before = counts_();
  launch(position, context, places);
  const um::Counters run = counts_() - before;
  faults_.push_back({.faults = run.faults,
                     .fetched = run.bytes_prefetched,
                     .written_back = run.bytes_offloaded,
                     .time = run.fault_time});
}

void Executor::launch(Position position, const StepContext& context, const Places& places) {
  const TaskRun& run = plan_.runs[position];
  const auto task = static_cast<std::size_t>(run.task);
  operands_.clear();
  for (const prefetch::DataId id : step_.launches[task].operands) {
    operands_.push_back(places.block(id));
  }
  stream_.label(step_.graph[run.task].name);
  kernels_[task]->run({.operands = operands_,
                       .workspace = places.workspace,
                       .context = &context,
                       .is_recomputation = run.is_recomputation});
  stream_.label({});
}

}  // namespace spillway
