#pragma once

#include <cstdint>
#include <functional>

#include "prefetch/runtime/given_step.h"
#include "tests/prefetch/runtime/given_copies.h"
#include "tests/prefetch/runtime/toy_step.h"

namespace spillway::prefetch::testing {

/// A toy step given ahead: the second one is kept, and repeated from then on.
class GivenToyStep {
 public:
  /// Both outlive it. Requires: the memory has fixed places.
  GivenToyStep(const StepLayout& layout, StepMemory& memory)
      : layout_{layout},
        places_{*memory.fixed_places()},
        given_{layout.plan, places_, lanes_},
        // What loads the batch, and waits for no move, is not repeated.
        first_{layout.plan.runs[0].after == Progress{} ? 1U : 0U} {}

  void run(std::uint64_t step, ToyResult& result) {
    step_ = step;
    result_ = &result;
    const auto launch = [this](Position position) {
      lanes_.launch([this, position] { run_kernel(position); });
    };
    if (!has_run_) {
      given_.run(launch);
      has_run_ = true;
      return;
    }
    if (!given_.has_kept()) given_.keep(first_, launch);
    for (Position position = 0; position < first_; ++position) launch(position);
    given_.repeat();
  }

 private:
  void run_kernel(Position position) {
    const TaskRun& run = layout_.plan.runs[position];
    const um::Bytes workspace = layout_.graph[run.task].algorithms[run.algorithm].workspace;
    const ToyArguments arguments{
        .address = [&](DataId id) { return places_.address(position, id); },
        .workspace = {places_.workspace(position), workspace.count()},
        .step = step_,
        .is_recomputation = run.is_recomputation};
    const std::uint64_t read =
        run_toy_kernel(layout_.graph, run.task, arguments, result_->workspaces_kept);
    if (!run.is_recomputation) result_->read.push_back(read);
  }

  const StepLayout& layout_;
  FixedPlaces& places_;
  PlainLanes lanes_;
  GivenStep given_;
  Position first_;
  bool has_run_ = false;
  std::uint64_t step_ = 0;
  ToyResult* result_ = nullptr;
};

}  // namespace spillway::prefetch::testing
