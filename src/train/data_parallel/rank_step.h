#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/program/micro_batches.h"
#include "src/program/step.h"
#include "src/ranks/communicator.h"
#include "src/run/executor.h"
#include "src/train/data_parallel/exchanged_gradients.h"
#include "src/train/data_parallel/rank_options.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway {

/// The running statistics that the micro-batches of a batch leave (Step::statistics). Each is
/// normalised by its own statistics, and begins with the running ones that the batch began with.
/// The batch leaves their mean, added up in order: they move once a batch, the same on all ranks.
///
/// Thread safety: none.
class BatchStatistics {
 public:
  /// Returns the near memory that those of other ranks' micro-batches take.
  [[nodiscard]] static um::Bytes others_memory(const MicroBatches& batches, const Step& step);

  /// Takes no memory for a step without them. `addresses` are those of the step's state, by DataId,
  /// which outlives it. Throws: um::OutOfMemory.
  BatchStatistics(const MicroBatches& batches, Communicator& communicator, const Step& step,
                  std::span<std::byte* const> addresses, um::Memory& memory);

  /// Puts the addresses of the step's into `addresses`, by DataId.
  void place(const Step& step, std::span<std::byte*> addresses) const;

  /// To be called before and after the step. Throws: what Communicator throws.
  void begin_batch();
  void end_batch();

 private:
  // All that a micro-batch leaves, block after block.
  [[nodiscard]] std::span<float> left_by(std::size_t micro_batch) const;

  MicroBatches batches_;
  Communicator& communicator_;
  std::vector<std::span<float>> blocks_;
  std::size_t stride_ = 0;  // numbers of a micro-batch
  um::Block block_;
};

/// One rank's part in the steps of a training: what its step exchanges with others, and what the
/// micro-batches of all ranks leave. A lone process is a rank of one.
///
/// Thread safety: as ExchangedGradients.
class RankStep {
 public:
  /// Returns the near memory that it takes besides the blocks of `step`.
  [[nodiscard]] static um::Bytes near_memory(const MicroBatches& batches,
                                             const RankOptions& options, const Step& step);

  /// The arguments but `batches` must outlive it. `addresses` are those of the step's state, by
  /// DataId. Throws: um::OutOfMemory.
  RankStep(const MicroBatches& batches, const RankOptions& options, const Step& step,
           std::span<std::byte* const> addresses, um::Memory& memory);

  /// Puts the addresses of what outlives the step beside its state into `addresses`, by DataId.
  void place(const Step& step, std::span<std::byte*> addresses) const;

  /// Begins a batch. Returns the sum of all ranks' `counted`: the labels of their samples that
  /// count.
  [[nodiscard]] std::size_t begin_batch(std::size_t counted);
  /// ExchangedGradients::exchange().
  void exchange(std::uint32_t bucket) { gradients_.exchange(bucket); }
  /// Returns the sum of all micro-batches' losses, added up in order; `own` are this rank's.
  [[nodiscard]] StepLoss end_batch(std::span<const StepLoss> own);

 private:
  MicroBatches batches_;
  Communicator& communicator_;
  ExchangedGradients gradients_;
  BatchStatistics statistics_;
};

}  // namespace spillway
