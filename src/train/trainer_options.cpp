#include "src/train/trainer_options.h"

#include "src/plan/sub_batch_choice.h"

namespace spillway {

std::optional<std::string_view> file_of_one_step(const PlanningOptions& planning,
                                                 std::size_t batch) {
  if (SubBatchChoice{planning.sub_batch}.leaves_whole(batch)) return std::nullopt;
  if (!planning.plan_file.empty()) return "plan";
  if (!planning.profile_file.empty()) return "profile";
  return std::nullopt;
}

DatasetOptions dataset_options(const TrainerOptions& options, std::size_t batch) {
  DatasetOptions result = dataset_options(options.network, batch, options.training.seed);
  result.tokenizer = options.tokenizer;
  result.images = options.images;
  return result;
}

}  // namespace spillway
