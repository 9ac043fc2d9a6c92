#include "src/cli/train/training_json.h"

#include <cerrno>
#include <iostream>

#include "nets/network.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/simulate/timeline.h"
#include "src/cli/flags/bucket_flag.h"
#include "src/cli/terminal/tell.h"
#include "src/plan/batch_facts.h"
#include "src/step/batch_norm_values.h"
#include "src/step/divided_updates.h"
#include "src/step/unread_tasks.h"
#include "src/train/settings_json.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

json what_was_trained(const Trainer& trainer) {
  const TrainerOptions& options = trainer.options();
  const nets::Network& network = options.network;
  const prefetch::SubBatches& sub_batches = trainer.workload().sub_batches();
  json result{{"network", network.name},
              {"parameters", nets::count_parameters(network)},
              {"batch", options.step.batch},
              {"sub_batch", sub_batches.size},
              {"sub_steps", sub_batches.steps},
              {"image", nets::to_string(network.input())},
              {"classes", network.classes()},
              {"data", trainer.data().train->name()},
              {"seed", options.training.seed},
              {"learning_rate", um::shortest_decimal(options.training.learning_rate.rate)},
              {"schedule", spillway::to_json(options.training.learning_rate)},
              {"optimizer", spillway::to_json(options.step.optimizer)},
              {"initialisation", name_of(options.initial.rule)},
              {"label_smoothing", um::shortest_decimal(options.step.label_smoothing)},
              {"mixing", spillway::to_json(options.training.mixing)},
              {"average_decay", options.step.average_decay},
              {"frozen_parameters", count_frozen(trainer.workload().training()).parameters}};
  if (normalizes_by_batch(trainer.graph())) {
    result["batch_norm_statistics"] = options.ranks.are_used() ? "per shard"
                                      : sub_batches.steps > 1  ? "per sub-batch"
                                                               : "per batch";
  }
  return result;
}

json by_which_ranks(const Trainer& trainer) {
  const RankOptions& ranks = trainer.options().ranks;
  const prefetch::ExchangeShare share = prefetch::exchange_share(trainer.session().timeline());
  const OptimizerBytes optimizer = optimizer_bytes(trainer.workload().training());
  json result = buckets_json(trainer.graph(), trainer.buckets(), ranks.chooses_buckets);
  result.update({{"ranks", ranks.communicator->ranks()},
                 {"library", ranks.between_near_memory().library()},
                 {"shards", ranks.shards},
                 {"buckets", prefetch::count_buckets(trainer.graph())},
                 {"reduction", ranks.reduction == RankReduction::kTree ? "tree" : "fastest"},
                 {"zero", ranks.divides_optimizer ? 1 : 0},
                 {"optimizer_bytes", optimizer.whole.count()},
                 {"optimizer_bytes_of_rank", optimizer.kept.count()},
                 {"exchange_seconds", um::seconds(share.exchanging)},
                 {"hidden_exchange_seconds", um::seconds(share.beside_runs)}});
  return result;
}

json how_it_was_planned(const Trainer& trainer, const std::string& far) {
  const prefetch::PlanFacts facts = facts_of(trainer.plans(), trainer.workload());
  json result{{"device", trainer.context().device->name()},
              {"backend", trainer.context().backend->description()},
              {"memory", to_string(trainer.options().memory.mode)},
              {"memory_description", trainer.session().memory_description()},
              {"far", far},
              {"planner", trainer.plan().planner},
              {"algorithms", facts.algorithms},
              {"recomputed_tasks", facts.recomputed_tasks},
              {"planned_offload_bytes", facts.offloaded.count()},
              {"planned_prefetch_bytes", facts.prefetched.count()},
              {"profile", trainer.profile().source},
              {"min_budget_bytes", trainer.need().smallest.count()},
              {"resident_bytes", trainer.need().resident.count()},
              {"page_bytes", trainer.workload().page().count()}};
  if (const auto use = trainer.session().arena_use()) result["placement"] = places_json(*use);
  return result;
}

}  // namespace

json training_json(const Trainer& trainer, const TrainingSummary& summary, const std::string& far) {
  json result = what_was_trained(trainer);
  result.update(how_it_was_planned(trainer, far));
  if (trainer.options().ranks.are_used()) result["ranks"] = by_which_ranks(trainer);
  result.update({{"broken_files", summary.broken_files},
                 {"budget_bytes", summary.budget.count()},
                 {"near_peak_bytes", summary.near_peak.count()},
                 {"steps", summary.steps},
                 {"weights_sha256", summary.weights_sha256}});
  return result;
}

JsonLines::JsonLines(const std::string& path) : path_{path} {
  if (path.empty() || path == "-") return;
  file_.open(path);
  if (!file_) throw um::system_error("cannot write " + path, errno);
}

void JsonLines::write(const nlohmann::json& object) {
  if (path_.empty()) return;
  std::ostream& out = path_ == "-" ? std::cout : file_;
  out << object.dump() << std::endl;
  if (!out) {
    throw um::system_error("cannot write " + (path_ == "-" ? "to standard output" : path_), errno);
  }
}

}  // namespace spillway::cli
