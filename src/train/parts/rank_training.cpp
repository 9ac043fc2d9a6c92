#include "src/train/parts/rank_training.h"

#include <string>

#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {

ShardedBatch shard_batch(const RankOptions& options, std::size_t batch) {
  const Communicator& communicator = *options.communicator;
  if (options.shards == 0 || batch % options.shards != 0) {
    throw um::Error{"a batch of " + std::to_string(batch) + " cannot be cut into " +
                    std::to_string(options.shards) +
                    " equal shards; give --shards that divide --batch"};
  }
  if (options.shards < communicator.ranks()) {
    throw um::Error{"a batch in " + um::count_of(options.shards, "shard") + " leaves some of " +
                    std::to_string(communicator.ranks()) +
                    " ranks without work; give more --shards, or start fewer ranks"};
  }
  return {.batch = batch,
          .tree = ShardTree{options.shards},
          .own = shards_of_rank(options.shards, communicator.ranks(), communicator.rank()),
          .buckets = options.buckets,
          .division = options.divides_optimizer ? OptimizerDivision{.rank = communicator.rank(),
                                                                    .ranks = communicator.ranks()}
                                                : OptimizerDivision{}};
}

}  // namespace spillway
