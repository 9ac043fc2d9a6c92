#include "src/cli/train/training_description.h"

#include <fmt/core.h>

#include <cstddef>
#include <string>
#include <vector>

#include "src/cli/flags/bucket_flag.h"
#include "src/cli/terminal/arena_report.h"
#include "src/cli/terminal/tell.h"
#include "src/io/weights/weight_file.h"
#include "src/plan/batch_facts.h"
#include "src/step/batch_norm_values.h"
#include "src/step/divided_updates.h"
#include "src/step/sub_step.h"
#include "src/step/unread_tasks.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

class Description {
 public:
  Description(const Trainer& trainer, const TrainingFlags& flags)
      : trainer_{trainer}, flags_{flags} {}

  void describe() const {
    const prefetch::PlanFacts facts = facts_of(trainer_.plans(), workload());
    tell("{} ({} parameters) at batch {} on {}\n", network().name,
         nets::count_parameters(network()), batch(), trainer_.context().backend->description());
    describe_ranks();
    describe_sub_batches();
    tell("{}; budget {} (smallest feasible {}, all near {})\n",
         trainer_.session().memory_description(), um::to_string(trainer_.plans().budget),
         um::to_string(trainer_.need().smallest), um::to_string(trainer_.need().resident));
    std::string algorithms;
    for (const auto& [name, count] : facts.algorithms) {
      algorithms += fmt::format("{}{} {}", algorithms.empty() ? "" : ", ", count, name);
    }
    tell("plan of {}: {} out and {} in a step, {} recomputed; convolutions: {}\n",
         trainer_.plan().planner, um::to_string(facts.offloaded), um::to_string(facts.prefetched),
         um::count_of(facts.recomputed_tasks, "task"), algorithms);
    if (const auto use = trainer_.session().arena_use()) {
      tell("arena: {}\n", describe_places(places_json(*use)));
    }
    if (const WeightFile* const weights = trainer_.weights()) {
      tell("weights of {}: {}\n", flags_.initial.weights, weights->description());
      if (!weights->drawn_layer().empty()) {
        tell("layer {} is drawn anew: the file has none for {} classes\n", weights->drawn_layer(),
             network().classes());
      }
    }
    if (trainer_.has_first_values()) {
      tell("weights of {}: its own\n", flags_.workload.net);
    }
    describe_frozen();
    if (trainer_.options().checkpoint.resume) {
      tell("going on after step {}\n", trainer_.options().training.first_step);
    }
  }

 private:
  [[nodiscard]] const nets::Network& network() const { return trainer_.options().network; }
  [[nodiscard]] std::size_t batch() const { return trainer_.options().step.batch; }
  [[nodiscard]] bool is_of_text() const { return network().reads_text(); }
  [[nodiscard]] const Workload& workload() const { return trainer_.workload(); }
  [[nodiscard]] const prefetch::SubBatches& sub_batches() const { return workload().sub_batches(); }

  void describe_frozen() const {
    const std::vector<std::string>& patterns = trainer_.options().step.frozen;
    if (patterns.empty()) return;
    const FrozenParameters frozen = count_frozen(workload().training());
    tell("{} of {} parameters are frozen, in {}\n", frozen.parameters,
         nets::count_parameters(network()), um::count_of(frozen.layers, "layer"));
  }

  void describe_ranks() const {
    const RankOptions& ranks = trainer_.options().ranks;
    if (!ranks.are_used()) return;
    tell("each batch in {} of {} on {}; gradients in {}\n", um::count_of(ranks.shards, "shard"),
         um::count_of(sub_batches().size, is_of_text() ? "text" : "image"),
         um::count_of(ranks.communicator->ranks(), "rank"),
         describe_buckets(
             buckets_json(trainer_.graph(), trainer_.buckets(), ranks.chooses_buckets)));
    const OptimizerBytes optimizer = optimizer_bytes(workload().training());
    if (optimizer.kept < optimizer.whole) {
      tell("each rank keeps {} of the optimizer's {}\n", um::to_string(optimizer.kept),
           um::to_string(optimizer.whole));
    } else if (ranks.divides_optimizer && ranks.communicator->ranks() > 1) {
      tell("note: --zero 1 divides nothing, since no block of weights has 64 KiB\n");
    }
    if (normalizes_by_batch(trainer_.graph())) {
      tell("note: batch norm's statistics are of each shard alone, whatever the ranks\n");
    }
  }

  void describe_sub_batches() const {
    if (sub_batches().steps == 1 || trainer_.options().ranks.are_used()) return;
    tell("each batch in {} sub-batches of {}{}\n", sub_batches().steps,
         um::count_of(sub_batches().size, is_of_text() ? "text" : "image"),
         batch() % sub_batches().size == 0 ? "" : ", the last one smaller");
    if (normalizes_by_batch(trainer_.graph())) {
      tell(
          "note: batch norm's statistics are of each sub-batch alone: not the same training "
          "as with the whole batch\n");
    }
    if (const auto layer = last_norm_of_one_value(network(), batch(), sub_batches())) {
      tell(
          "warning: in the last sub-batch, of one image, layer {} gets one value per channel and "
          "makes zeros of it; give a --sub-batch that divides the batch\n",
          *layer);
    }
  }

  const Trainer& trainer_;
  const TrainingFlags& flags_;
};

}  // namespace

void describe_training(const Trainer& trainer, const TrainingFlags& flags) {
  Description{trainer, flags}.describe();
}

}  // namespace spillway::cli
