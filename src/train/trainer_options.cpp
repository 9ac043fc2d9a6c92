#include "src/train/trainer_options.h"

#include "src/plan/sub_batch_choice.h"
#include "um/error.h"

namespace spillway {

std::optional<std::string_view> file_of_one_step(const PlanningOptions& planning,
                                                 std::size_t batch) {
  if (SubBatchChoice{planning.sub_batch}.leaves_whole(batch)) return std::nullopt;
  if (!planning.plan_file.empty()) return "plan";
  if (!planning.profile_file.empty()) return "profile";
  return std::nullopt;
}

void expect_mixable(const TrainerOptions& options) {
  if (!options.training.mixing.is_on()) return;
  if (options.network.reads_text()) {
    throw um::Error{"mixup and CutMix are of images, but the network reads text; leave them out"};
  }
  if (options.network.labels() != nets::square(1)) {
    throw um::Error{
        "mixup and CutMix mix labels of images, but the network labels each pixel; leave them out"};
  }
  if (options.step.batch == 1) {
    throw um::Error{
        "mixup and CutMix mix images of a batch, but it has one alone; use a larger --batch, or "
        "leave them out"};
  }
}

DatasetOptions dataset_options(const TrainerOptions& options, std::size_t batch) {
  DatasetOptions result = dataset_options(options.network, batch, options.training.seed);
  result.tokenizer = options.tokenizer;
  result.images = options.images;
  return result;
}

}  // namespace spillway
