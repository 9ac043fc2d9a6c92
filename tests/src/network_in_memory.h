#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nets/network.h"
#include "prefetch/plan.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/program/step.h"
#include "src/train/checkpoint/state.h"
#include "src/train/session.h"

namespace spillway::test {

/// A network ready to train on this machine's processor: resident, or within the smallest budget
/// there is unless another is given. What may not be read before it is written is poisoned.
class NetworkInMemory {
 public:
  NetworkInMemory(nets::Network network, const StepOptions& options, MemoryMode memory);
  /// On another processor.
  NetworkInMemory(ExecutionContext context, nets::Network network, const StepOptions& options,
                  MemoryMode memory);
  /// Likewise, within `budget`, of which a resident run takes no notice.
  NetworkInMemory(ExecutionContext context, nets::Network network, const StepOptions& options,
                  MemoryMode memory, const Budget& budget);
  /// Each batch of `options` in micro-batches of at most `micro_batch`.
  NetworkInMemory(nets::Network network, const StepOptions& options, MemoryMode memory,
                  std::size_t micro_batch);

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] const nets::Network& network() const { return network_; }
  [[nodiscard]] const Step& training_step() const { return workload_.training(); }
  [[nodiscard]] const prefetch::Plan& training_plan() const { return plans_.training; }
  [[nodiscard]] const Plans& plans() const { return plans_; }
  [[nodiscard]] const Workload& workload() const { return workload_; }

 private:
  NetworkInMemory(ExecutionContext context, nets::Network network, const StepOptions& options,
                  MemoryMode memory, std::size_t micro_batch, const Budget& budget);

  ExecutionContext context_;
  nets::Network network_;
  Workload workload_;
  Plans plans_;
  Session session_;
};

/// The numbers of a state block, in the canonical order.
struct BlockNumbers {
  std::string name;
  std::vector<float> values;
};

/// Gives the blocks of a state such numbers, one entry for each block of `step`, in order; by way
/// of a checkpoint's file.
void set_numbers(State& state, const Step& step, const std::vector<BlockNumbers>& numbers);

/// The numbers of all blocks of `step`, in order; by way of a checkpoint's file.
[[nodiscard]] std::vector<BlockNumbers> numbers_of(const State& state, const Step& step);

/// So many images in [-1, 1] of the network's size, which differ from each other and from step to
/// step, or tokens, and labels that take turns.
[[nodiscard]] inline Batch drawn_batch(const nets::Network& network, std::size_t size,
                                       std::uint64_t step) {
  Batch batch;
  const bool has_tokens = network.input().form == nets::Form::kTokens;
  for (std::size_t i = 0; i < size * network.input().elements(); ++i) {
    const std::size_t drawn = i * 7919 + step * 31;
    batch.images.push_back(has_tokens ? static_cast<float>(drawn % network.classes())
                                      : static_cast<float>(drawn % 257) / 128 - 1);
  }
  const auto [height, width] = network.labels();
  for (std::size_t n = 0; n < size * height * width; ++n) {
    batch.labels.push_back(static_cast<std::int32_t>((n + step) % network.classes()));
  }
  return batch;
}

}  // namespace spillway::test
