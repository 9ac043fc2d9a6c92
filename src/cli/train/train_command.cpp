#include "src/cli/train/train_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstddef>
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
#include "prefetch/simulate/chrome_trace.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/simulate/timeline.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/progress_line.h"
#include "src/cli/terminal/tell.h"
#include "src/cli/train/confusion_matrix.h"
#include "src/cli/train/json_lines.h"
#include "src/cli/train/recipe.h"
#include "src/cli/train/training_description.h"
#include "src/cli/train/training_flags.h"
#include "src/cli/train/training_json.h"
#include "src/cli/train/training_report.h"
#include "src/train/checkpoint_choice.h"
#include "src/train/parts/first_rank.h"
#include "src/train/trainer.h"
#include "um/error.h"
#include "um/text/count_of.h"

namespace spillway::cli {
namespace {

struct TrainCommandFlags {
  TrainingFlags flags;
  std::string trace;
  std::string json;
  std::string arguments;  // of the command line, all together
};

// One training, from its setup to the last line of its report.
class Training {
 public:
  Training(const TrainCommandFlags& options, TrainerOptions asked, std::stop_token stop)
      : options_{options},
        trainer_{[&options] { return options.flags.device.open(); }, std::move(asked), events(),
                 std::move(stop)} {
    progress_.end();
  }

  void run() {
    describe_training(trainer_, options_.flags);
    const TrainOptions& training = trainer_.options().training;
    const std::size_t batch = trainer_.options().step.batch;
    report_.emplace(options_.json, samples_of_step(trainer_.options().network, batch),
                    StepRange{.before = training.first_step,
                              .last = last_step(training, trainer_.data(), batch)},
                    trainer_.plans().budget);
    const TrainingSummary summary = trainer_.run();
    attempt([&] {
      report_->finish(training_json(trainer_, summary, options_.flags.memory.far), summary);
    });
    report_->print(summary);
    attempt([&] { write_confusion(summary); });
    attempt([&] { write_trace(); });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // Keeps what fails for later: a full disk under one file keeps no other from being written.
  template <class Work>
  void attempt(const Work& work) {
    try {
      work();
    } catch (const um::Error&) {
      if (!failure_) failure_ = std::current_exception();
    }
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

  void write_trace() const {
    if (options_.trace.empty()) return;
    const prefetch::Timeline& measured = trainer_.session().timeline();
    std::vector<prefetch::NamedTimeline> timelines;
    if (trainer_.options().memory.mode != MemoryMode::kResident) {
      timelines.push_back(
          {"predicted", prefetch::simulate(trainer_.graph(), trainer_.plan(), trainer_.profile())});
    }
    if (!measured.runs.empty()) {  // there was a step
      timelines.push_back({"measured, last step", measured});
    }
    prefetch::write_json(prefetch::to_chrome_trace(trainer_.graph(), trainer_.plan(), timelines),
                         options_.trace);
  }

  void write_confusion(const TrainingSummary& summary) const {
    if (options_.flags.confusion.empty()) return;
    if (!summary.evaluation || summary.evaluation->confusion.empty()) {
      tell("no confusion matrix: there was no evaluation\n");
      return;
    }
    write_confusion_matrix(summary.evaluation->confusion, options_.flags.confusion);
  }

  const TrainCommandFlags& options_;
  ProgressLine progress_;
  std::optional<TrainingReport> report_;
  Trainer trainer_;
  std::exception_ptr failure_;  // the first one of what is written at the end
};

// What is known of a training without making it ready.
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
  JsonLines{options.json}.write({{"summary", summary}});
}

void expect_writable_outputs(const TrainCommandFlags& options) {
  const TrainingFlags& flags = options.flags;
  expect_one_standard_output({{"--json", options.json},
                              {"--trace", options.trace},
                              {"--confusion", options.flags.confusion}});
  expect_writable(options.json);
  expect_writable(options.trace);
  expect_writable(options.flags.confusion);
  if (flags.checkpoint.resume || flags.checkpoint.folder.empty()) return;
  expect_no_checkpoint(flags.checkpoint.folder);
  expect_writable_folder(flags.checkpoint.folder);
}

// What one rank says, or writes, is what all of them would.
void join_ranks(TrainCommandFlags& options) {
  TrainingFlags& flags = options.flags;
  flags.shards.join(flags.workload.batch);
  if (is_first(flags.shards.communicator())) return;
  be_silent();
  options.json.clear();
  options.trace.clear();
  flags.confusion.clear();
}

void run_training(TrainCommandFlags& options) {
  TrainingFlags& flags = options.flags;
  if (is_first(flags.shards.communicator())) expect_writable_outputs(options);
  flags.memory.expect_far();
  if (flags.shards.are_used() && flags.device.threads == 0) {
    flags.device.threads = static_cast<int>(flags.shards.usual_threads());
  }
  flags.shards.choose_device(flags.device.device);
  const Interrupt interrupt;
  TrainerOptions asked = flags.trainer(options.arguments);
  const nets::Network network = asked.network;
  try {
    Training{options, std::move(asked), interrupt.token()}.run();
  } catch (const NothingLeft& all) {
    report_nothing_left(options, network, all);
  }
}

// What goes wrong on one rank ends all of them, which wait for it.
void train(TrainCommandFlags& options) {
  options.flags.expect_files_of_all_steps();
  join_ranks(options);
  Communicator* const communicator = options.flags.shards.communicator();
  if (communicator == nullptr || communicator->ranks() == 1) return run_training(options);
  try {
    run_training(options);
  } catch (const Interrupted&) {
    throw;  // on all of them
  } catch (const std::bad_alloc&) {
    end_all(*communicator, "this machine has no more memory");
  } catch (const std::exception& error) {
    end_all(*communicator, error.what());
  }
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("train", "Train a network within a memory budget");
  const auto options = std::make_shared<TrainCommandFlags>();  // shared: the callback keeps it
  options->flags.add_to(*command);
  add_recipe_to(*command);
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
    options->arguments = command->config_to_str();
    train(*options);
  });
}

}  // namespace spillway::cli
