#include "prefetch/runtime/runner/step_runner.h"

#include <cstddef>
#include <exception>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {

FarLane::FarLane(const Plan& plan, StepMemory& memory)
    : plan_{plan}, memory_{memory}, intervals_(plan.far_runs.size()) {
  if (!plan.far_runs.empty()) thread_.emplace([this] { run_all(); });
}

void FarLane::begin_step(Clock::time_point begin, const Update& update) {
  if (!thread_) return;
  begin_ = begin;
  update_ = &update;
  thread_->begin();
}

void FarLane::end_step() {
  abandon();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void FarLane::abandon() noexcept {
  if (thread_) thread_->wait();
}

void FarLane::run_all() {
  const auto now = [this] { return um::Nanoseconds{Clock::now() - begin_}; };
  try {
    for (std::size_t i = 0; i < plan_.far_runs.size(); ++i) {
      memory_.wait_for(plan_.far_runs[i].after);
      intervals_[i].begin = now();
      (*update_)(plan_.far_runs[i].update);
      intervals_[i].end = now();
    }
  } catch (...) {
    failure_ = std::current_exception();
    memory_.fail(failure_);
  }
}

namespace {

// Returns by position whether the run's end must be known as soon as it has ended.
std::vector<bool> awaited_runs(const Plan& plan, const StepMemory& memory) {
  std::vector<bool> awaited(plan.runs.size(), memory.needs_each_end());
  const auto await = [&](std::uint32_t runs) {
    if (runs > 0) awaited[runs - 1] = true;
  };
  await(static_cast<std::uint32_t>(plan.runs.size()));
  for (const Move& offload : plan.offloads) {
    await(offload.after.runs);
    await(offload.frees_after());
  }
  for (const Move& prefetch : plan.prefetches) await(prefetch.after.runs);
  for (const FarRun& far_run : plan.far_runs) await(far_run.after.runs);
  for (const ExchangeRun& exchange : plan.exchanges) await(exchange.after_runs);
  return awaited;
}

}  // namespace

StepRunner::StepRunner(const Plan& plan, StepMemory& memory, um::Stream& stream)
    : plan_{plan},
      memory_{memory},
      stream_{stream},
      is_awaited_{awaited_runs(plan, memory)},
      far_{plan, memory},
      exchanges_{plan} {}

Timeline StepRunner::run(const Launch& launch, const Beside& beside) {
  walk(launch, beside, /*takes_times=*/true);
  Timeline moves = memory_.moves();
  return {.runs = timeline_.runs,
          .offloads = std::move(moves.offloads),
          .prefetches = std::move(moves.prefetches),
          .far_runs = far_.intervals(),
          .exchanges = exchanges_.intervals()};
}

void StepRunner::walk(const Launch& launch, const Beside& beside, bool takes_times) {
  begin();
  um::expects(plan_.far_runs.empty() || beside.far_update, "who makes updates on the far side");
  far_.begin_step(begin_, beside.far_update);
  exchanges_.begin_step(begin_, beside.exchange);
  try {
    launch_all(launch, takes_times);
  } catch (...) {
    if (!plan_.far_runs.empty()) memory_.fail(std::current_exception());
    far_.abandon();
    exchanges_.abandon();
    throw;
  }
  far_.end_step();
  exchanges_.end_step();
}

void StepRunner::launch_all(const Launch& launch, bool takes_times) {
  for (Position position = 0; position < plan_.runs.size(); ++position) {
    exchanges_.wait_for(plan_.runs[position].after_exchanges);
    memory_.begin_run(position);
    Interval& interval = timeline_.runs[position];
    if (takes_times) {
      stream_.notify(
          [this, &interval](Clock::time_point moment) { interval.begin = moment - begin_; });
    }
    launch(position);
    memory_.after_launch(position);
    if (!takes_times && !is_awaited_[position]) continue;
    stream_.notify([this, position, &interval](Clock::time_point moment) {
      interval.end = moment - begin_;
      end_runs(position);
    });
  }
  memory_.end_step();
  wait_for_runs();
}

void StepRunner::begin() {
  begin_ = Clock::now();
  ended_ = 0;
  timeline_.runs.assign(plan_.runs.size(), {});
  memory_.begin_step();
}

// Notes that all runs up to `last` have ended.
void StepRunner::end_runs(Position last) {
  for (Position position = ended_; position <= last; ++position) end_run(position);
}

void StepRunner::end_run(Position position) {
  try {
    memory_.end_run(position);
  } catch (...) {
    memory_.fail(std::current_exception());
  }
  // Everything under the lock: after its release the step may have ended.
  const std::lock_guard lock{mutex_};
  exchanges_.end_run(++ended_);
  changed_.notify_all();
}

void StepRunner::wait_for_runs() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return ended_ == plan_.runs.size(); });
}

}  // namespace spillway::prefetch
