#include "src/train/data_parallel/rank_options.h"

#include <string>

#include "src/program/divided_updates.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {

void expect_whole_shards(const RankOptions& options, std::size_t batch) {
  um::expects(options.shards.has_value(), "a batch that is sharded");
  const Communicator& communicator = options.communicator;
  const std::size_t shards = *options.shards;
  if (shards == 0 || batch % shards != 0) {
    throw um::Error{"a batch of " + std::to_string(batch) + " cannot be cut into " +
                    std::to_string(shards) + " equal shards; give --shards that divide --batch"};
  }
  if (shards < communicator.size()) {
    throw um::Error{"a batch in " + um::count_of(shards, "shard") + " leaves some of " +
                    std::to_string(communicator.size()) +
                    " ranks without work; give more --shards, or start fewer ranks"};
  }
}

MicroBatches shard_batch(const RankOptions& options, std::size_t batch) {
  expect_whole_shards(options, batch);
  const Communicator& communicator = options.communicator;
  const std::size_t shards = *options.shards;
  return {.batch = batch,
          .size = batch / shards,
          .tree = ShardTree{shards},
          .own = shards_of_rank(shards, communicator.size(), communicator.rank())};
}

void share_program(Step& program, const SizeModel& size_model, const RankOptions& options) {
  const Communicator& communicator = options.communicator;
  if (communicator.size() == 1) return;
  if (options.divides_optimizer) {
    divide_updates(program, size_model,
                   {.rank = communicator.rank(), .ranks = communicator.size()});
  }
  exchange_gradients(program, options.buckets);
}

}  // namespace spillway
