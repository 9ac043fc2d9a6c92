#include "src/executor.h"

#include <chrono>
#include <cstring>

namespace spillway {

using prefetch::Position;
using prefetch::TaskRun;

Executor::Executor(const Step& step, const prefetch::Plan& plan, const Backend& backend,
                   prefetch::StepMemory& memory, um::Stream& stream, const std::atomic<bool>& stop)
    : step_{step},
      plan_{plan},
      memory_{memory},
      stream_{stream},
      stop_{stop},
      kernels_(step.launches.size()) {
  stream_.enqueue([&] {
    for (const TaskRun& run : plan_.runs) {
      const auto task = static_cast<std::size_t>(run.task);
      if (kernels_[task] != nullptr) continue;
      kernels_[task] = backend.prepare(step_.launches[task].operation,
                                       step_.graph[run.task].algorithms[run.algorithm].name);
    }
  });
  stream_.synchronize();
}

StepResult Executor::run(const StepContext& context) {
  StepResult result;
  stream_.enqueue([&] { run_all(context, result); });
  stream_.synchronize();
  return result;
}

void Executor::run_all(const StepContext& context, StepResult& result) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  memory_.begin_step();
  result.timeline.runs.resize(plan_.runs.size());
  for (Position position = 0; position < plan_.runs.size(); ++position) {
    if (stop_) throw Interrupted{};
    memory_.begin_run(position);
    result.timeline.runs[position].begin = Clock::now() - start;
    run_one(position, context);
    result.timeline.runs[position].end = Clock::now() - start;
    memory_.end_run(position);
  }
  memory_.end_step();
  prefetch::Timeline moves = memory_.moves();
  result.timeline.offloads = std::move(moves.offloads);
  result.timeline.prefetches = std::move(moves.prefetches);
  // Two floats are too small to be moved, and nothing has overwritten them.
  std::memcpy(&result.loss, memory_.address(step_.result), sizeof(float));
  std::memcpy(&result.correct, memory_.address(step_.result) + sizeof(float), sizeof(float));
}

void Executor::run_one(Position position, const StepContext& context) {
  const TaskRun& run = plan_.runs[position];
  const auto task = static_cast<std::size_t>(run.task);
  operands_.clear();
  for (const prefetch::DataId id : step_.launches[task].operands) {
    operands_.push_back(memory_.address(id));
  }
  kernels_[task]->run({.operands = operands_,
                       .workspace = memory_.workspace(),
                       .context = &context,
                       .is_recomputation = run.is_recomputation});
}

}  // namespace spillway
