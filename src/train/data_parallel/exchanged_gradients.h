#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/task_graph.h"
#include "src/program/micro_batches.h"
#include "src/program/step.h"
#include "src/ranks/tree_reduction.h"
#include "src/train/data_parallel/rank_options.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway {

/// One of TaskGraph::exchanges: of gradients, or of the parameters that lie in their memory.
struct BucketExchange {
  prefetch::Collective collective = prefetch::Collective::kAllReduce;
  NumberSlice whole;                 ///< blocks that are summed for all ranks
  std::vector<NumberSlice> divided;  ///< blocks that each rank has a slice of
};

/// Places the gradients that a step exchanges (Step::gradients) in one block of memory: bucket
/// after bucket, each aligned.
class GradientLayout {
 public:
  explicit GradientLayout(const Step& step);

  /// The size of all of them, padding included.
  [[nodiscard]] um::Bytes size() const { return size_; }
  /// The place of one of Step::gradients.
  [[nodiscard]] um::Bytes offset(const Step& step, prefetch::DataId gradient) const;
  /// The numbers that each of TaskGraph::exchanges exchanges.
  [[nodiscard]] const std::vector<BucketExchange>& exchanges() const { return exchanges_; }

 private:
  void place(const Step& step, prefetch::DataId id);
  [[nodiscard]] NumberSlice numbers(const Step& step, prefetch::DataId id) const;
  [[nodiscard]] BucketExchange exchange_of(const Step& step,
                                           const prefetch::GradientExchange& exchange) const;

  um::Bytes size_;
  std::vector<um::Bytes> offsets_;  // by Step::gradients
  std::vector<BucketExchange> exchanges_;
};

/// The gradients that a step exchanges with other ranks, and the sums of this rank that wait for
/// that (Step::waiting), in one block of near memory. Adds them up in the order of the tree over
/// the batch's micro-batches.
///
/// Thread safety: exchange() on one thread while the step is under way; else none.
class ExchangedGradients {
 public:
  /// Returns the near memory that it takes for `step` besides the step's blocks.
  [[nodiscard]] static um::Bytes scratch_memory(const MicroBatches& batches,
                                                const RankOptions& options, const Step& step);

  /// Takes no memory for a step that exchanges nothing. Keeps references to the communicator of
  /// `options`; the memory must outlive it. Throws: um::OutOfMemory.
  ExchangedGradients(const MicroBatches& batches, const RankOptions& options, const Step& step,
                     um::Memory& memory);

  /// Puts the addresses of gradients and sums into `addresses`, by DataId of the same step.
  void place(const Step& step, std::span<std::byte*> addresses) const;

  /// Makes one of TaskGraph::exchanges: the gradients of a bucket, complete on this rank, become
  /// the sums over all micro-batches, those that are divided in this rank's slice; or the
  /// parameters that lie in their memory are gathered. Throws: what Communicator throws.
  void exchange(std::uint32_t exchange);

 private:
  // Turns this rank's sums of these numbers into those of all micro-batches, in all of them or in
  // its slice.
  enum class Sum { kWhole, kSlice };
  void add_up(const NumberSlice& numbers, Sum wanted);
  // The gradients behind the sums that wait.
  [[nodiscard]] std::span<float> node(std::size_t index) const;

  GradientLayout layout_;
  std::size_t waits_;  // sums
  RankReduction rule_;
  Communicator& communicator_;
  TreeReduction reduction_;
  um::Block block_;  // of sums that wait, gradients, and the reduction's scratch
};

}  // namespace spillway
