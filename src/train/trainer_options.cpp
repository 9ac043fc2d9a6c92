#include "src/train/trainer_options.h"

#include "src/data/batch_order.h"
#include "src/plan/sub_batch_choice.h"
#include "um/error.h"
#include "um/text/count_of.h"

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

void expect_evaluation(const TrainerOptions& options, const DatasetPair& data) {
  const TrainOptions& training = options.training;
  const bool has_use =
      options.checkpoint.keep_best || options.patience > 0 || training.has_confusion;
  if (!has_use || training.evaluate_every.value_or(0) > 0) return;
  const std::string what =
      "keeping the best checkpoint, stopping early and the confusion matrix are of evaluations, "
      "and there is none: ";
  if (training.evaluate_every == 0) throw um::Error{what + "evaluations are turned off"};
  const std::uint64_t first = steps_per_epoch(data.train->size(), options.step.batch);
  const std::uint64_t last = last_step(training, data, options.step.batch);
  if (last >= first) return;
  throw um::Error{what + "the first one follows the epoch's last step, " + std::to_string(first) +
                  ", and the training ends after " + um::count_of(last, "step") +
                  "; give --eval-every N, or more steps"};
}

DatasetOptions dataset_options(const TrainerOptions& options, std::size_t batch) {
  DatasetOptions result = dataset_options(options.network, batch, options.training.seed);
  result.tokenizer = options.tokenizer;
  result.images = options.images;
  return result;
}

}  // namespace spillway
