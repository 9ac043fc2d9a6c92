#include "src/execute/executor.h"

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace spillway {

using prefetch::Position;
using prefetch::TaskRun;

Executor::Executor(const Step& step, const prefetch::Plan& plan, const Backend& backend,
                   prefetch::StepMemory& memory, um::Stream& stream, std::stop_token stop)
    : step_{step},
      plan_{plan},
      memory_{memory},
      stream_{stream},
      stop_{std::move(stop)},
      runner_{plan, memory, stream},
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
  result.timeline = runner_.run([&](Position position) {
    if (stop_.stop_requested()) throw Interrupted{};
    run_one(position, context);
  });
  // Two floats are too small to be moved, and nothing has overwritten them.
  std::array<float, 2> numbers{};
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span{numbers});
  stream_.read({memory_.address(step_.result), bytes.size()}, bytes);
  result.loss = numbers[0];
  result.correct = numbers[1];
}

void Executor::run_one(Position position, const StepContext& context) {
  const TaskRun& run = plan_.runs[position];
  const auto task = static_cast<std::size_t>(run.task);
  operands_.clear();
  for (const prefetch::DataId id : step_.launches[task].operands) {
    operands_.push_back(memory_.address(id));
  }
  stream_.label(step_.graph[run.task].name);
  kernels_[task]->run({.operands = operands_,
                       .workspace = memory_.workspace(),
                       .context = &context,
                       .is_recomputation = run.is_recomputation});
  stream_.label({});
}

}  // namespace spillway
