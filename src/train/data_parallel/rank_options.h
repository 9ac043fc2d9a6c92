#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "src/ops/backend.h"
#include "src/program/micro_batches.h"
#include "src/program/step.h"
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
};

/// Returns the part of `all` micro-batches that this rank of `communicator` trains. Throws:
/// um::Error, one sentence for the user, when some rank would have none.
[[nodiscard]] MicroBatches part_of_rank(MicroBatches all, const Communicator& communicator);

/// Makes the program of a rank's part of a batch that of one rank among several: its gradients are
/// exchanged, and with `divides_optimizer` it updates a slice. Does nothing for a rank alone.
void share_program(Step& program, const SizeModel& size_model, const RankOptions& options);

}  // namespace spillway
