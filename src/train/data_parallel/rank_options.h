#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "src/ops/backend.h"
#include "src/program/passes.h"
#include "src/ranks/agreement.h"
#include "src/ranks/communicator.h"

namespace spillway {

/// How ranks add up the gradients of their micro-batches.
enum class RankReduction {
  kTree,    ///< in one order (SumTree): the same bits for any number of ranks
  kFastest  ///< as the library of the ranks likes; bits depend on how many they are
};

/// Options of a training on ranks. Each rank trains some micro-batches of each batch.
/// Results depend on the micro-batches, not on the ranks. The default is a process alone.
struct RankOptions {
  /// This rank's end of the communication between the processes.
  std::reference_wrapper<Communicator> communicator = self_communicator();
  /// Joins the devices of all ranks; this rank's is the context's. Null, or empty, where near
  /// memory is RAM, which `communicator` exchanges.
  std::function<std::unique_ptr<Communicator>(ExecutionContext&)> join_devices;
  /// The result of `join_devices`; nullopt where near memory is RAM.
  std::optional<std::reference_wrapper<Communicator>> device_communicator;
  prefetch::BucketRule buckets;
  /// Plans choose others where those are faster (choose_buckets()).
  bool chooses_buckets = false;
  RankReduction reduction = RankReduction::kTree;
  /// Each rank keeps a slice of the optimizer's numbers, and updates that of the parameters (ZeRO,
  /// stage 1): the same bits.
  bool divides_optimizer = false;
  std::vector<NamedText> agreement;  ///< what else must be the same on all ranks

  /// The communicator that exchanges near memory.
  [[nodiscard]] Communicator& between_near_memory() const {
    return device_communicator.value_or(communicator);
  }
  /// The features of this rank's program; none for a rank alone.
  [[nodiscard]] Features features() const {
    const std::size_t ranks = communicator.get().size();
    if (ranks == 1) return {};
    const OptimizerDivision division{.rank = communicator.get().rank(), .ranks = ranks};
    return {.division = divides_optimizer ? division : OptimizerDivision{}, .buckets = buckets};
  }
};

}  // namespace spillway
