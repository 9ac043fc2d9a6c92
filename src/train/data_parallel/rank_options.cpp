#include "src/train/data_parallel/rank_options.h"

#include <string>

#include "src/program/divided_updates.h"
#include "um/error.h"

namespace spillway {

MicroBatches part_of_rank(MicroBatches all, const Communicator& communicator) {
  if (all.count() < communicator.size()) {
    const std::string cut =
        all.count() == 1 ? "" : " in " + std::to_string(all.count()) + " micro-batches";
    throw um::Error{"a batch" + cut + " leaves some of " + std::to_string(communicator.size()) +
                    " ranks without work; start fewer ranks, or give more --micro-batches, which "
                    "--resume takes from the checkpoint"};
  }
  all.own = micro_batches_of_rank(all.count(), communicator.size(), communicator.rank());
  return all;
}

void share_program(Step& program, const SizeModel& size_model, const RankOptions& options) {
  const Communicator& communicator = options.communicator;
  if (communicator.size() == 1) return;
  const OptimizerDivision division{.rank = communicator.rank(), .ranks = communicator.size()};
  exchange_gradients(program, size_model,
                     options.divides_optimizer ? division : OptimizerDivision{}, options.buckets);
}

}  // namespace spillway
