#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "nets/network.h"
#include "prefetch/files/json.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/simulate/chrome_trace.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/simulate/timeline.h"
#include "src/cli/commands.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/flags/rank_flags.h"
#include "src/cli/plan_figures.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/train/recipe.h"
#include "src/cli/train/training_flags.h"
#include "src/cli/train/training_report.h"
#include "src/io/weights/weight_file.h"
#include "src/plan/plans.h"
#include "src/program/combinations.h"
#include "src/program/micro_batches.h"
#include "src/program/passes.h"
#include "src/program/step.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/checkpoint/settings.h"
#include "src/train/trainer.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/machine/available_memory.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

// The first steps add this to RAM beside near and far memory, for oneDNN's code and stacks. It
// was 3 to 27 MiB with LeNet, ResNet-18, ResNet-50 and a GPT.
constexpr um::Bytes kBesideSteps{14ULL << 20U};

json what_was_trained(const Trainer& trainer) {
  const TrainerOptions& options = trainer.options();
  const nets::Network& network = options.network;
  const MicroBatches& batches = trainer.workload().micro_batches();
  json result{{"network", network.name},
              {"parameters", nets::count_parameters(network)},
              {"batch", options.step.batch},
              {"micro_batch_size", batches.size},
              {"micro_batches", batches.count()},
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
    result["batch_norm_statistics"] = batches.count() > 1 ? "per micro-batch" : "per batch";
  }
  return result;
}

json by_which_ranks(const Trainer& trainer) {
  const RankOptions& ranks = trainer.options().ranks;
  const prefetch::ExchangeShare share = prefetch::exchange_share(trainer.session().timeline());
  const OptimizerBytes optimizer = optimizer_bytes(trainer.workload().training());
  json result = buckets_json(trainer.graph(), trainer.buckets(), ranks.chooses_buckets);
  result.update({{"ranks", ranks.communicator.get().size()},
                 {"library", ranks.between_near_memory().library()},
                 {"buckets", prefetch::count_buckets(trainer.graph())},
                 {"reduction", ranks.reduction == RankReduction::kTree ? "tree" : "fastest"},
                 {"zero", ranks.divides_optimizer ? 1 : 0},
                 {"optimizer_bytes", optimizer.whole.count()},
                 {"optimizer_bytes_of_rank", optimizer.kept.count()},
                 {"exchange_seconds", um::seconds(share.exchanging)},
                 {"hidden_exchange_seconds", um::seconds(share.beside_runs)}});
  return result;
}

json how_it_was_planned(const Trainer& trainer) {
  const std::string& far_file = trainer.space().far.file;
  const prefetch::PlanFacts facts = facts_of(trainer.plan(), trainer.graph());
  json result{{"device", trainer.context().device->name()},
              {"backend", trainer.context().backend->description()},
              {"memory", to_string(trainer.memory())},
              {"memory_description", trainer.session().memory_description()},
              {"far", far_file.empty() ? "ram" : "file:" + far_file},
              {"far_bytes", trainer.session().far_memory().count()},
              {"planner", trainer.plan().planner},
              {"algorithms", facts.algorithms},
              {"recomputed_tasks", facts.recomputed_tasks},
              {"planned_offload_bytes", facts.offloaded.count()},
              {"planned_prefetch_bytes", facts.prefetched.count()},
              {"profile", trainer.profile().source},
              {"profile_kept", trainer.kept_since().has_value()},
              {"min_budget_bytes", trainer.need().smallest.count()},
              {"resident_bytes", trainer.need().resident.count()},
              {"page_bytes", trainer.workload().page().count()}};
  if (const auto use = trainer.session().arena_use()) result["placement"] = places_json(*use);
  return result;
}

bool is_on_host(const Trainer& trainer) { return trainer.context().device->memory_facts().is_host; }

// The RAM of the whole process, as expected.
struct RamOfTraining {
  um::Bytes expected;
  um::Bytes with_far_file;
};

// Returns the RAM for batches: one that is used, and two that are loaded.
um::Bytes ram_of_batches(const Trainer& trainer) {
  constexpr std::uint64_t kBatches = 3;
  const nets::Shape input = trainer.options().network.input();
  const std::uint64_t bytes = trainer.session().loads_bytes() ? 1 : sizeof(float);
  return kBatches * um::Bytes{trainer.session().batch() * input.elements() * bytes};
}

// Near memory is taken before the first step, far memory as it is used.
RamOfTraining ram_of(const Trainer& trainer) {
  constexpr std::uint64_t kPart = 1024;  // of a far file that its checksums have in RAM
  const um::FarOptions& far = trainer.space().far;
  const um::Bytes size = trainer.session().far_memory();
  const um::Bytes budget = trainer.plans().budget;
  const um::Bytes near = trainer.memory() == MemoryMode::kManaged
                             ? std::min(budget, trainer.need().peak_with_workspace)
                             : budget;
  const um::Bytes with_far_file = trainer.ram_before() + near + kBesideSteps +
                                  ram_of_batches(trainer) +
                                  um::Bytes{far.checksums ? size.count() / kPart : 0};
  return {.expected = far.file.empty() ? with_far_file + size : with_far_file,
          .with_far_file = with_far_file};
}

json what_it_takes(const Trainer& trainer) {
  if (!is_on_host(trainer)) return json::object();
  const RamOfTraining ram = ram_of(trainer);
  return {{"expected_ram_bytes", ram.expected.count()},
          {"expected_ram_bytes_with_far_file", ram.with_far_file.count()}};
}

// Returns the summary of train --json: settings and results, without the times, which the report
// adds.
json training_json(const Trainer& trainer, const TrainingSummary& summary) {
  json result = what_was_trained(trainer);
  result.update(how_it_was_planned(trainer));
  result.update(what_it_takes(trainer));
  if (trainer.options().ranks.communicator.get().size() > 1) {
    result["ranks"] = by_which_ranks(trainer);
  }
  result.update({{"broken_files", summary.broken_files},
                 {"budget_bytes", summary.budget.count()},
                 {"near_peak_bytes", summary.near_peak.count()},
                 {"steps", summary.steps},
                 {"weights_sha256", summary.weights_sha256}});
  return result;
}

// Prints network, data, memory and plan before the training begins.
class Description {
 public:
  Description(const Trainer& trainer, const TrainingFlags& flags)
      : trainer_{trainer}, flags_{flags} {}

  void describe() const {
    const prefetch::PlanFacts facts = facts_of(trainer_.plan(), trainer_.graph());
    tell("{} ({} parameters) at batch {} on {}\n", network().name,
         nets::count_parameters(network()), batch(), trainer_.context().backend->description());
    describe_data();
    describe_micro_batches();
    const prefetch::NearNeed need = trainer_.need();
    tell("{}; budget {} ({}{})\n", trainer_.session().memory_description(),
         um::to_string(trainer_.plans().budget),
         describe_need(need, trainer_.memory() == MemoryMode::kResident),
         need.peak_with_workspace == need.resident
             ? ""
             : fmt::format(", with room for any algorithm {}",
                           um::to_string(need.peak_with_workspace)));
    describe_ram();
    std::string algorithms;
    for (const auto& [name, count] : facts.algorithms) {
      algorithms += fmt::format("{}{} {}", algorithms.empty() ? "" : ", ", count, name);
    }
    tell("plan of {}: {} out and {} in a step, {} recomputed{}{}\n", trainer_.plan().planner,
         um::to_string(facts.offloaded), um::to_string(facts.prefetched),
         um::count_of(facts.recomputed_tasks, "task"),
         algorithms.empty() ? "" : "; algorithms: ", algorithms);
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
    tell("{}", describe_kept_times(trainer_.kept_since(), trainer_.options().planning.times.cache));
    if (trainer_.has_first_values()) {
      tell("weights of {}: its own\n", flags_.workload.net);
    }
    describe_frozen();
    if (trainer_.options().checkpoint.resume) {
      tell("going on after step {}\n", trainer_.steps_before());
    }
  }

 private:
  [[nodiscard]] const nets::Network& network() const { return trainer_.options().network; }
  [[nodiscard]] std::size_t batch() const { return trainer_.options().step.batch; }
  [[nodiscard]] bool is_of_text() const { return network().reads_text(); }
  [[nodiscard]] const Workload& workload() const { return trainer_.workload(); }
  [[nodiscard]] const MicroBatches& batches() const { return workload().micro_batches(); }

  // "images in flowers: 300 to learn from, 99 to test on, 3 classes"
  void describe_data() const {
    const DatasetPair& data = trainer_.data();
    const std::size_t classes =
        data.class_names.empty() ? data.train->classes() : data.class_names.size();
    const bool tells_classes = !is_of_text() && flags_.data != kGeneratedData;
    tell("{}{}: {} to learn from, {} to test on{}{}\n", data.train->name(),
         flags_.has_data ? "" : " (no --data was given)", data.train->size(), data.test->size(),
         is_of_text() ? fmt::format(", of {} each", um::count_of(network().input().height, "token"))
                      : "",
         tells_classes ? fmt::format(", {} classes", classes) : "");
  }

  // "RAM in all about 223 MiB; with --far file:DIR about 163 MiB"
  void describe_ram() const {
    if (!is_on_host(trainer_)) return;
    const RamOfTraining ram = ram_of(trainer_);
    std::string text = "RAM in all about " + um::to_string(ram.expected);
    if (trainer_.has_spilled()) {
      text += fmt::format(", and {} in a file, as RAM has no room for near and far memory",
                          um::to_string(trainer_.session().far_memory()));
    } else if (ram.with_far_file < ram.expected) {
      text += "; with --far file:DIR about " + um::to_string(ram.with_far_file);
    }
    tell("{}\n", text);
  }

  void describe_frozen() const {
    const std::vector<std::string>& patterns = trainer_.options().step.frozen;
    if (patterns.empty()) return;
    const FrozenParameters frozen = count_frozen(workload().training());
    tell("{} of {} parameters are frozen, in {}\n", frozen.parameters,
         nets::count_parameters(network()), um::count_of(frozen.layers, "layer"));
  }

  void describe_micro_batches() const {
    if (batches().count() == 1) return;
    tell("each batch in {} micro-batches of {}{}{}\n", batches().count(),
         um::count_of(batches().size, is_of_text() ? "text" : "image"), by_ranks(),
         batch() % batches().size == 0 ? "" : ", the last one smaller");
    describe_division();
    if (normalizes_by_batch(trainer_.graph())) {
      tell(
          "note: batch norm's statistics are of each micro-batch alone: not the same training "
          "as with the whole batch\n");
    }
    if (const auto layer = last_norm_of_one_value(network(), batches())) {
      tell(
          "warning: in the last micro-batch, of one image, layer {} gets one value per channel and "
          "makes zeros of it; give a --micro-batch-size that divides the batch\n",
          *layer);
    }
  }

  // Returns " on 2 ranks; gradients in 7 buckets".
  [[nodiscard]] std::string by_ranks() const {
    const RankOptions& ranks = trainer_.options().ranks;
    const std::size_t size = ranks.communicator.get().size();
    if (size == 1) return {};
    return fmt::format(" on {} ranks; gradients in {}", size,
                       describe_buckets(buckets_json(trainer_.graph(), trainer_.buckets(),
                                                     ranks.chooses_buckets)));
  }

  void describe_division() const {
    const RankOptions& ranks = trainer_.options().ranks;
    const OptimizerBytes optimizer = optimizer_bytes(workload().training());
    if (optimizer.kept < optimizer.whole) {
      tell("each rank keeps {} of the optimizer's {}\n", um::to_string(optimizer.kept),
           um::to_string(optimizer.whole));
    } else if (ranks.divides_optimizer && ranks.communicator.get().size() > 1) {
      tell("note: --zero 1 divides nothing, since no block of weights has 64 KiB\n");
    }
  }

  const Trainer& trainer_;
  const TrainingFlags& flags_;
};

struct TrainCommandFlags {
  TrainingFlags flags;
  std::string timeline;
  std::string json;
  std::string tensorboard;  // folder; empty: none
  std::string arguments;    // the command line's arguments, joined
};

// One training, from setup to the last line of its report.
class Training {
 public:
  Training(const TrainCommandFlags& options, TrainerOptions asked, std::stop_token stop)
      : options_{options},
        trainer_{[&options] { return options.flags.device.open(); }, std::move(asked), events(),
                 std::move(stop)} {
    progress_.end();
  }

  void run() {
    Description{trainer_, options_.flags}.describe();
    if (options_.flags.is_dry_run) return foretell();
    report_.emplace(JsonLines{options_.json, options_.flags.checkpoint.resume}, tensorboard_log(),
                    samples_of_step(trainer_.options().network, trainer_.options().step.batch),
                    StepRange{.before = trainer_.steps_before(), .last = trainer_.last_step()},
                    trainer_.plans().budget);
    const TrainingSummary summary = trainer_.run();
    attempt([&] { report_->finish(training_json(trainer_, summary), summary); });
    report_->print(summary, options_.flags.profile_file);
    if (shows_other_times(summary) && trainer_.forget_profiles()) {
      tell("the next start measures these times anew\n");
    }
    attempt([&] { write_confusion(summary); });
    attempt([&] { write_timeline(); });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Keeps an exception for later: if one file cannot be written, the others still are.
  template <class Work>
  void attempt(const Work& work) {
    try {
      work();
    } catch (const um::Error&) {
      if (!failure_) failure_ = std::current_exception();
    }
  }

  [[nodiscard]] std::optional<TensorBoardLog> tensorboard_log() const {
    if (options_.tensorboard.empty()) return std::nullopt;
    std::optional<std::uint64_t> done;
    if (options_.flags.checkpoint.resume) done = trainer_.steps_before();
    return TensorBoardLog{options_.tensorboard, done};
  }

  // Says what the training would take and write, instead of training.
  void foretell() const {
    const std::uint64_t last = trainer_.last_step();
    const std::uint64_t left = last - std::min(last, trainer_.steps_before());
    const auto step = trainer_.predicted_step();
    tell("would train {}{}\n", um::count_of(left, "step"),
         step ? fmt::format(", of {:.4f} s each as predicted: {} in all, without evaluations",
                            um::seconds(*step),
                            clock_text(static_cast<double>(left) * um::seconds(*step)))
              : "");
    json writes = json::object();
    for (const auto& [flag, path] : outputs()) {
      if (path.empty() || path == "-") continue;
      writes[flag] = path;
      tell("would write {} ({})\n", path, flag);
    }
    if (writes.empty()) tell("would write nothing\n");
    if (options_.json != "-") return;
    json result = what_was_trained(trainer_);
    result.update(how_it_was_planned(trainer_));
    result.update(what_it_takes(trainer_));
    result.update({{"budget_bytes", trainer_.plans().budget.count()},
                   {"steps", last},
                   {"steps_left", left},
                   {"writes", writes},
                   {"predicted_step_seconds", nullptr}});
    if (step) result["predicted_step_seconds"] = um::seconds(*step);
    prefetch::write_json({{"dry_run", result}}, "-");
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> outputs() const {
    return {{"--checkpoint", options_.flags.checkpoint.folder},
            {"--json", options_.json},
            {"--tensorboard", options_.tensorboard},
            {"--timeline", options_.timeline},
            {"--confusion", options_.flags.confusion}};
  }

  [[nodiscard]] TrainerEvents events() {
    return {
        .on_looking =
            [this](double fraction) {
              progress_.show_part("looking at the files of the data", fraction);
            },
        .on_measuring =
            [this](double fraction) { progress_.show_part("measuring tasks", fraction); },
        .on_planning =
            [this](std::size_t tasks) {
              progress_.end();
              tell("planning {}\n", um::count_of(tasks, "task"));
            },
        .on_step = [this](auto step, auto epoch,
                          const auto& as) { report_->step(step, epoch, as); },
        .on_evaluation = [this](auto step, auto epoch,
                                const auto& as) { report_->evaluation(step, epoch, as); },
        .on_early_stop = [this](auto step, const auto& best) { report_->early_stop(step, best); },
        .on_warning =
            [this](const auto& sentence) {
              progress_.end();
              if (report_) return report_->warn(sentence);
              tell("warning: {}\n", sentence);
            }};
  }

  void write_timeline() const {
    if (options_.timeline.empty()) return;
    const prefetch::Timeline& measured = trainer_.session().timeline();
    std::vector<prefetch::NamedTimeline> timelines;
    if (trainer_.memory() != MemoryMode::kResident) {
      timelines.push_back(
          {"predicted", prefetch::simulate(trainer_.graph(), trainer_.plan(), trainer_.profile())});
    }
    if (!measured.runs.empty()) {  // there was at least one step
      timelines.push_back({"measured, last step", measured});
    }
    prefetch::write_json(prefetch::to_chrome_trace(trainer_.graph(), trainer_.plan(), timelines),
                         options_.timeline);
  }

  void write_confusion(const TrainingSummary& summary) const {
    if (options_.flags.confusion.empty()) return;
    if (!summary.evaluation || summary.evaluation->confusion.empty()) {
      tell("no confusion matrix: there was no evaluation\n");
      return;
    }
    write_confusion_matrix(summary.evaluation->confusion, trainer_.data().class_names,
                           options_.flags.confusion);
  }

  const TrainCommandFlags& options_;
  ProgressLine progress_;
  std::optional<TrainingReport> report_;
  Trainer trainer_;
  std::exception_ptr failure_;  // the first failure while writing at the end
};

// Prints what is known of a finished training without setting it up.
void report_nothing_left(const TrainCommandFlags& options, const nets::Network& network,
                         const NothingLeft& all) {
  tell("{}\n", all.what());
  const EndedTraining& training = all.training();
  nlohmann::json summary{{"network", network.name},
                         {"batch", options.flags.workload.batch},
                         {"seed", options.flags.train.seed},
                         {"steps", training.steps},
                         {"steps_run", 0},
                         {"weights_sha256", training.weights_sha256}};
  if (training.evaluation) {
    summary.update(test_figures(evaluation_of(*training.evaluation), network.reads_text()));
  }
  if (options.flags.is_dry_run && options.json != "-") return;
  JsonLines{options.json, /*goes_on=*/true}.write({{"summary", summary}});
}

void expect_writable_outputs(const TrainCommandFlags& options) {
  const TrainingFlags& flags = options.flags;
  expect_one_standard_output({{"--json", options.json},
                              {"--timeline", options.timeline},
                              {"--confusion", options.flags.confusion}});
  expect_writable(options.json);
  expect_writable(options.timeline);
  expect_writable(options.flags.confusion);
  if (!options.tensorboard.empty()) expect_writable_folder(options.tensorboard);
  if (flags.checkpoint.resume) return expect_own_log(options.json);
  if (flags.checkpoint.folder.empty()) return;
  expect_no_checkpoint(flags.checkpoint.folder);
  expect_writable_folder(flags.checkpoint.folder);
}

// Joins the ranks; only rank 0 prints and writes, as all would do the same.
void join_ranks(TrainCommandFlags& options) {
  TrainingFlags& flags = options.flags;
  flags.launcher.join();
  if (flags.launcher.are_given() && !flags.micro_batches.is_given()) {
    flags.micro_batches.count = LauncherFlags::usual_micro_batches(flags.workload.batch);
  }
  if (flags.launcher.communicator().rank() == 0) return;
  be_silent();
  options.json.clear();
  options.timeline.clear();
  options.tensorboard.clear();
  flags.confusion.clear();
}

void run_training(TrainCommandFlags& options) {
  TrainingFlags& flags = options.flags;
  if (flags.launcher.communicator().rank() == 0) expect_writable_outputs(options);
  flags.launcher.choose_share(flags.device);
  flags.restore_far_folder();
  flags.memory.expect_far();
  const Interrupt interrupt;
  TrainerOptions asked = flags.trainer(options.arguments);
  const nets::Network network = asked.network;
  try {
    std::optional<Training> training;
    try {
      training.emplace(options, std::move(asked), interrupt.token());
    } catch (const Interrupted&) {
      throw Interrupted{"no step was trained"};
    }
    training->run();
  } catch (const NothingLeft& all) {
    report_nothing_left(options, network, all);
  }
}

// Trains; a failure on one rank ends all ranks, which wait for it.
void train(TrainCommandFlags& options, const CLI::App& command) {
  join_ranks(options);
  options.flags.memory.note_idle_flags(command);
  Communicator& communicator = options.flags.launcher.communicator();
  if (communicator.size() == 1) return run_training(options);
  try {
    run_training(options);
  } catch (const Interrupted&) {
    throw;  // raised on all ranks
  } catch (const std::bad_alloc&) {
    end_all(communicator, "this machine has no more memory");
  } catch (const std::exception& error) {
    end_all(communicator, error.what());
  }
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("train", "Train a network within a memory budget");
  const auto options = std::make_shared<TrainCommandFlags>();  // shared with the callback
  options->flags.add_to(*command);
  add_recipe_to(*command);
  command
      ->add_option("--timeline", options->timeline,
                   "Write a Chrome trace of the last step, predicted and measured, to this file; "
                   "Perfetto opens it")
      ->group("Output");
  command
      ->add_option(
          "--json", options->json,
          "Write one JSON object per step and a summary to this file, - for standard output. A "
          "training that goes on adds to the file")
      ->group("Output");
  command
      ->add_option("--tensorboard", options->tensorboard,
                   "Write loss, accuracy, rate, times, near memory, moved bytes and faults of each "
                   "step, and evaluations, to an event file in this folder, which TensorBoard "
                   "shows: tensorboard --logdir DIR")
      ->type_name("DIR")
      ->group("Output");
  command->footer(
      "Example: spillway train --net resnet50 --batch 32 --steps 20 --budget 40% --json -");
  command->callback([options, command] {
    options->flags.complete(*command);
    options->arguments = command->config_to_str();
    train(*options, *command);
  });
}

}  // namespace spillway::cli
