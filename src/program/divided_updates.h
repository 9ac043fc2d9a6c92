#pragma once

#include <cstddef>

#include "prefetch/gradient_exchange.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "um/bytes.h"

namespace spillway {

/// Which of the ranks of a training keeps which of the optimizer's numbers: each all of them, or a
/// slice (ZeRO, stage 1).
struct OptimizerDivision {
  std::size_t rank = 0;
  std::size_t ranks = 1;

  [[nodiscard]] bool is_whole() const { return ranks == 1; }
};

/// Gradients of fewer bytes are updated whole by every rank: a message of their own would take
/// longer, and they are little of the memory.
inline constexpr um::Bytes kSmallestDivided{64ULL << 10U};

/// Has this rank update its slice (slice_of_rank()) of each large block of parameters, or part of
/// one, and keep the optimizer's numbers of that alone. The new parameters lie in the gradient's
/// memory ("conv1.updated"), where prefetch::with_exchanges() gathers them, and a task more
/// ("conv1.take") copies them to their place. Each block has one size on all ranks. Each number is
/// updated as it would be without: the same bits.
/// Requires: gradients are not exchanged yet.
void divide_updates(Step& step, const SizeModel& size_model, const OptimizerDivision& division);

/// divide_updates(), then exchange_gradients() of step.h. Throws: um::Error where nothing is
/// trained.
void exchange_gradients(Step& step, const SizeModel& size_model, const OptimizerDivision& division,
                        const prefetch::BucketRule& rule);

/// Bytes of what the optimizer keeps beside parameters.
struct OptimizerBytes {
  um::Bytes whole;  ///< on all ranks together
  um::Bytes kept;   ///< on each of them
};
[[nodiscard]] OptimizerBytes optimizer_bytes(const Step& step);

}  // namespace spillway
