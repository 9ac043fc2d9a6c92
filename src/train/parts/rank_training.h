#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "nets/network.h"
#include "prefetch/gradient_exchange.h"
#include "src/io/data/dataset.h"
#include "src/ops/backend.h"
#include "src/ranks/agreement.h"
#include "src/ranks/communicator.h"
#include "src/step/shard_steps.h"

namespace spillway {

/// How ranks add up the gradients of their shards.
enum class RankReduction {
  kTree,    ///< in one order (ShardTree): the same bits for any number of ranks
  kFastest  ///< as the library of the ranks likes; bits depend on how many they are
};

/// A training that this process is one rank of.
struct RankOptions {
  Communicator* communicator = nullptr;  ///< null: it is the only one, and there are no shards
  /// Joins the devices of all ranks, of which this one's is the context's; none where near memory
  /// is RAM, which `communicator` exchanges.
  std::function<std::unique_ptr<Communicator>(ExecutionContext&)> join_devices;
  /// What that made; null: nothing.
  Communicator* near_communicator = nullptr;
  /// So many equal parts of a batch are each trained as a sub-batch, by one of the ranks: what a
  /// training comes to depends on them, and not on the ranks.
  std::size_t shards = 1;
  prefetch::BucketRule buckets;
  /// Plans choose others where those are faster (choose_buckets()).
  bool chooses_buckets = false;
  RankReduction reduction = RankReduction::kTree;
  /// Each rank keeps a slice of the optimizer's numbers, and updates that of the parameters (ZeRO,
  /// stage 1): the same bits.
  bool divides_optimizer = false;
  std::vector<NamedText> agreement;  ///< what else must be the same on all ranks

  [[nodiscard]] bool are_used() const { return communicator != nullptr; }
  /// Requires: are_used().
  [[nodiscard]] Communicator& between_near_memory() const {
    return near_communicator != nullptr ? *near_communicator : *communicator;
  }
};

/// What this rank trains of a batch. Throws: um::Error, one sentence for the user, where the batch
/// cannot be cut so, or a rank would have nothing to do.
[[nodiscard]] ShardedBatch shard_batch(const RankOptions& options, std::size_t batch);

/// Throws on all ranks, where there are some: um::Error that says what differs, where they would
/// not train the same network on the same data with the same kernels and as many threads, or
/// RankOptions::agreement differs. Of the data it compares names, sizes, class names,
/// content_sha256(), and samples that are spread over all.
void expect_ranks_agree(const RankOptions& ranks, const nets::Network& network,
                        const DatasetPair& data, const ExecutionContext& context);

/// The same of weights that `name` tells of, by their SHA-256; empty: there are none.
void expect_same_weights(const RankOptions& ranks, const std::string& name,
                         const std::string& sha256);

/// Whether a stop is requested, on any rank where there are some: all of them call this.
[[nodiscard]] bool is_stopped(const RankOptions& ranks, const std::stop_token& stop);

/// How many different texts all ranks have together. All of them call this.
[[nodiscard]] std::size_t distinct_of_ranks(Communicator& communicator,
                                            const std::vector<std::string>& own);

/// What ranks but the first have to tell the user, who hears the first one alone.
///
/// Thread safety: none.
class RankWarnings {
 public:
  /// `ranks` must outlive it, and its communicator.
  explicit RankWarnings(const RankOptions& ranks) : ranks_{ranks} {}

  /// What this rank has told, or has to.
  void add(const std::string& sentence);
  /// Whether this rank has something for the first one.
  [[nodiscard]] bool are_there() const { return !untold_.empty(); }
  /// All ranks call it. Returns, on the first one, the new sentences of the others, each with its
  /// rank and once, whoever has it. Throws: what Communicator throws.
  [[nodiscard]] std::vector<std::string> gather();

 private:
  const RankOptions& ranks_;
  std::vector<std::string> untold_;
  std::set<std::string> told_;  // on the first rank
};

}  // namespace spillway
