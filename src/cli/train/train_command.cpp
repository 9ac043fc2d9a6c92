#include "src/cli/train/train_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/simulate/chrome_trace.h"
#include "prefetch/simulate/simulate.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/arena_report.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/train/training_flags.h"
#include "src/cli/train/training_report.h"
#include "src/cli/train/training_setup.h"
#include "src/plan/plan_facts.h"
#include "src/step/sub_step.h"
#include "src/train/session.h"
#include "src/train/settings_json.h"
#include "src/train/shortest_decimal.h"
#include "um/count_of.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

struct Options {
  TrainingFlags flags;
  std::string trace;
  std::string json;
};

// One training, from its setup to the last line of its report.
class Training {
 public:
  Training(const Options& options, const std::atomic<bool>& stop)
      : options_{options}, stop_{stop}, setup_{options.flags, stop} {}

  void run() {
    Session session{setup_.context(),        setup_.workload(),      setup_.plans(),
                    setup_.request().memory, flags().memory.space(), stop_};
    if (stop_) throw Interrupted{};
    describe(session);
    TrainOptions options = setup_.training();
    start(session, options);
    TrainingReport report{options_.json, options.batch, setup_.plans().budget};
    steps_done_ = options.first_step;
    train(session, setup_.data(), options,
          {.on_step =
               [&](auto step, auto epoch, const auto& as) {
                 steps_done_ = step;
                 report.step(step, epoch, as);
               },
           .on_evaluation = [&](auto step, auto epoch,
                                const auto& as) { report.evaluation(step, epoch, as); },
           .on_checkpoint = [&](auto step) { save(session, step); }});
    report.finish(summary(session, options), setup_.predicted_step());
    write_trace(session);
  }

 private:
  [[nodiscard]] const TrainingFlags& flags() const { return options_.flags; }
  [[nodiscard]] const prefetch::Plan& plan() const { return setup_.plan(); }
  [[nodiscard]] const prefetch::SubBatches& sub_batches() const {
    return setup_.workload().sub_batches();
  }
  [[nodiscard]] MemoryMode memory() const { return setup_.request().memory; }

  void describe(const Session& session) const {
    const PlanFacts facts = facts_of(setup_.plans(), setup_.workload());
    fmt::print(stderr, "{} ({} parameters) at batch {} on {}\n", setup_.network().name,
               nets::count_parameters(setup_.network()), flags().workload.batch,
               setup_.context().backend->description());
    describe_sub_batches();
    fmt::print(stderr, "{}; budget {} (smallest feasible {}, all near {})\n",
               session.memory_description(), um::to_string(setup_.plans().budget),
               um::to_string(setup_.workload().need().smallest),
               um::to_string(setup_.workload().need().resident));
    std::string algorithms;
    for (const auto& [name, count] : facts.algorithms) {
      algorithms += fmt::format("{}{} {}", algorithms.empty() ? "" : ", ", count, name);
    }
    fmt::print(stderr, "plan of {}: {} out and {} in a step, {} recomputed; convolutions: {}\n",
               plan().planner, um::to_string(facts.offloaded), um::to_string(facts.prefetched),
               um::count_of(facts.recomputed_tasks, "task"), algorithms);
    if (const auto use = session.arena_use()) {
      fmt::print(stderr, "arena: {}\n", describe_places(places_json(*use)));
    }
  }

  void describe_sub_batches() const {
    if (sub_batches().steps == 1) return;
    fmt::print(stderr, "each batch in {} sub-batches of {}{}\n", sub_batches().steps,
               um::count_of(sub_batches().size, "image"),
               flags().workload.batch % sub_batches().size == 0 ? "" : ", the last one smaller");
    if (normalizes_by_batch(setup_.graph())) {
      fmt::print(stderr,
                 "note: batch norm's statistics are of each sub-batch alone: not the same training "
                 "as with the whole batch\n");
    }
  }

  // First values, or those of the checkpoint.
  void start(Session& session, TrainOptions& options) const {
    if (flags().checkpoint.resume) {
      options.first_step = setup_.folder()->load(setup_.checkpoint_key(), session.state());
      fmt::print(stderr, "going on after step {}\n", options.first_step);
    } else {
      session.state().initialise(options.seed);
    }
    if (setup_.folder()) save_plans();
  }

  void save_plans() const {
    const std::vector<RepeatedStep>& steps = setup_.workload().training_steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      setup_.folder()->save_plan(i, steps.size(), setup_.plans().training[i], steps[i].step.graph);
    }
  }

  void save(Session& session, std::uint64_t step) const {
    if (!setup_.folder()) return;
    setup_.folder()->save({.key = setup_.checkpoint_key(),
                           .settings = {.learning_rate = setup_.training().learning_rate,
                                        .optimizer = flags().workload.optimizer.options(),
                                        .threads = setup_.context().threads,
                                        .precision = flags().context.chosen_precision(),
                                        .deterministic = flags().context.deterministic,
                                        .sub_batch = kept_sub_batch()},
                           .step = step},
                          session.state());
  }

  [[nodiscard]] std::optional<std::size_t> kept_sub_batch() const {
    if (sub_batches().steps == 1) return std::nullopt;
    return sub_batches().size;
  }

  [[nodiscard]] json summary(Session& session, const TrainOptions& options) const {
    const PlanFacts facts = facts_of(setup_.plans(), setup_.workload());
    json result{{"network", setup_.network().name},
                {"parameters", nets::count_parameters(setup_.network())},
                {"batch", options.batch},
                {"sub_batch", sub_batches().size},
                {"sub_steps", sub_batches().steps},
                {"image", nets::to_string(setup_.network().input())},
                {"classes", setup_.network().classes()},
                {"data", setup_.data().train->name()},
                {"seed", options.seed},
                {"learning_rate", shortest_decimal(options.learning_rate.rate)},
                {"schedule", to_json(options.learning_rate)},
                {"optimizer", to_json(flags().workload.optimizer.options())},
                {"device", setup_.context().device->name()},
                {"backend", setup_.context().backend->description()},
                {"memory", to_string(memory())},
                {"memory_description", session.memory_description()},
                {"far", flags().memory.far},
                {"planner", plan().planner},
                {"algorithms", facts.algorithms},
                {"recomputed_tasks", facts.recomputed_tasks},
                {"planned_offload_bytes", facts.offloaded.count()},
                {"planned_prefetch_bytes", facts.prefetched.count()},
                {"profile", setup_.profile().source},
                {"budget_bytes", setup_.plans().budget.count()},
                {"min_budget_bytes", setup_.workload().need().smallest.count()},
                {"resident_bytes", setup_.workload().need().resident.count()},
                {"near_peak_bytes", session.near_peak().count()},
                {"page_bytes", setup_.workload().page().count()},
                {"steps", steps_done_},
                {"weights_sha256", session.state().sha256()}};
    if (const auto use = session.arena_use()) result["placement"] = places_json(*use);
    if (normalizes_by_batch(setup_.graph())) {
      result["batch_norm_statistics"] = sub_batches().steps > 1 ? "per sub-batch" : "per batch";
    }
    return result;
  }

  void write_trace(const Session& session) const {
    if (options_.trace.empty()) return;
    std::vector<prefetch::NamedTimeline> timelines;
    if (memory() != MemoryMode::kResident) {
      timelines.push_back(
          {"predicted", prefetch::simulate(setup_.graph(), plan(), setup_.profile())});
    }
    if (!session.timeline().runs.empty()) {  // there was a step
      timelines.push_back({"measured, last step", session.timeline()});
    }
    prefetch::write_json(prefetch::to_chrome_trace(setup_.graph(), plan(), timelines),
                         options_.trace);
  }

  const Options& options_;
  const std::atomic<bool>& stop_;
  TrainingSetup setup_;
  std::uint64_t steps_done_ = 0;
};

void train(Options& options) {
  TrainingFlags& flags = options.flags;
  flags.expect_files_of_all_steps();
  expect_one_standard_output({{"--json", options.json}, {"--trace", options.trace}});
  if (!flags.train.steps && !flags.train.epochs) flags.train.epochs = 1;
  flags.train.batch = flags.workload.batch;
  expect_writable(options.json);
  expect_writable(options.trace);
  flags.memory.expect_far();
  if (!flags.checkpoint.resume && !flags.checkpoint.folder.empty()) {
    expect_no_checkpoint(flags.checkpoint.folder);
    expect_writable_folder(flags.checkpoint.folder);
  }
  const Interrupt interrupt;
  Training{options, interrupt.requested()}.run();
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("train", "Train a network within a memory budget");
  const auto options = std::make_shared<Options>();  // shared: the callback keeps it
  options->flags.add_to(*command);
  command
      ->add_option("--trace", options->trace,
                   "Write a Chrome trace of the last step (or its last sub-batch), predicted and "
                   "measured, to this file; Perfetto opens it")
      ->group("Output");
  command
      ->add_option(
          "--json", options->json,
          "Write one JSON object per step and a summary to this file, - for standard output")
      ->group("Output");
  command->footer(
      "Example: spillway train --net resnet50 --batch 32 --steps 20 --budget 40% --json -");
  command->callback([options, command] {
    options->flags.complete(*command);
    train(*options);
  });
}

}  // namespace spillway::cli
