#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "src/io/data/dataset.h"
#include "src/io/weights/weight_file.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/data_parallel/rank_warnings.h"
#include "src/train/evaluation.h"
#include "src/train/planned_steps.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "src/train/trainer_options.h"
#include "src/train/training_folder.h"
#include "src/train/training_inputs.h"

namespace spillway {

/// One training within a memory budget, from its data to its last checkpoint.
///
/// Thread safety: none; a stop may be requested from any thread.
class Trainer {
 public:
  /// Opens the data, measures the step on `context`, plans it, and fills the weights: with first
  /// values, those of a file, or those of the checkpoint. Throws: um::Error, one sentence for the
  /// user; NothingLeft before anything is measured; Interrupted when `stop` is requested, now or in
  /// run(), which ends the step under way first, and saves it where there is a folder.
  Trainer(ExecutionContext context, TrainerOptions options, TrainerEvents events = {},
          std::stop_token stop = {});
  /// The same, but opens the device only when the data are open: a mistake in the data set's name
  /// or files shows at once.
  Trainer(const std::function<ExecutionContext()>& open_context, TrainerOptions options,
          TrainerEvents events = {}, std::stop_token stop = {});

  /// Trains to the end, one pass over the data unless the options say otherwise. To be called once.
  /// What an event throws ends the training as a stop does, after its step and with a checkpoint.
  /// Throws: as train() does, um::Error when a checkpoint cannot be written, and what an event
  /// threw: of an um::Error the sentence, and where the training goes on from.
  TrainingSummary run();

  /// How long a step should take by its plan; nullopt where no plan depends on times.
  [[nodiscard]] std::optional<um::Nanoseconds> predicted_step() const;
  /// The options given, with what the data and the device settle.
  [[nodiscard]] const TrainerOptions& options() const { return inputs_.options; }
  [[nodiscard]] const DatasetPair& data() const { return inputs_.data; }
  [[nodiscard]] const ExecutionContext& context() const { return inputs_.context; }
  [[nodiscard]] const Workload& workload() const { return steps_.workload(); }
  [[nodiscard]] MemoryMode memory() const { return steps_.memory(); }
  /// Steps done before it goes on; 0 where it begins.
  [[nodiscard]] std::uint64_t steps_before() const { return progress_.start.step; }
  /// The step with which it ends.
  [[nodiscard]] std::uint64_t last_step() const;
  /// Far memory, link and paging: as asked for, or with a far file where has_spilled().
  [[nodiscard]] const um::ManagedOptions& space() const { return steps_.space(); }
  /// Whether far memory is in a file because RAM has no room for it.
  [[nodiscard]] bool has_spilled() const { return steps_.has_spilled(); }
  /// RAM of the process before it took near and far memory, measurements over.
  [[nodiscard]] um::Bytes ram_before() const { return ram_before_; }
  /// What a run needs in near memory, with the smallest budget that works.
  [[nodiscard]] prefetch::NearNeed need() const { return steps_.need(); }
  [[nodiscard]] const Plans& plans() const { return steps_.plans(); }
  /// The buckets in which ranks exchange gradients.
  [[nodiscard]] const prefetch::BucketRule& buckets() const { return steps_.buckets(); }
  [[nodiscard]] const Session& session() const { return *session_; }
  /// The file that the first parameters are from; null where they are not.
  [[nodiscard]] const WeightFile* weights() const { return weights_ ? &*weights_ : nullptr; }
  /// Whether it began with those of InitialOptions::values.
  [[nodiscard]] bool has_first_values() const { return has_first_values_; }
  /// The last of the steps of a batch, which updates the weights: its graph, times and plan. The
  /// times are a model's where no plan depends on them.
  [[nodiscard]] const prefetch::TaskGraph& graph() const { return workload().training().graph; }
  [[nodiscard]] const prefetch::Profile& profile() const { return steps_.profile(); }
  /// When these times were measured, if an earlier run kept them: TimesOptions::cache.
  [[nodiscard]] const std::optional<std::string>& kept_since() const { return steps_.kept_since(); }
  /// Has the next run measure them anew. Returns whether they were kept.
  [[nodiscard]] bool forget_profiles() const { return steps_.forget_profiles(); }
  [[nodiscard]] const prefetch::Plan& plan() const { return plans().training; }

 private:
  // How far a training has come, the same on all ranks.
  struct Progress {
    TrainingStart start;
    std::optional<BestEvaluation> best;
    std::optional<LastEvaluation> last;
  };

  [[nodiscard]] TrainerEvents events_of_planning();
  [[nodiscard]] std::optional<WeightFile> open_weights() const;
  [[nodiscard]] Communicator& communicator() const { return options().ranks.communicator; }
  void expect_going_on() const;
  void expect_same_start() const;
  [[nodiscard]] TensorSource start_values() const;
  void open_folder(bool must_be_new);
  void go_on_from(const ChosenCheckpoint& chosen);
  void plan_steps();
  [[nodiscard]] KeptPlans kept_plans() const;
  void warn_of_schedule();
  void start();
  void fill_state();
  void draw_state();

  void train_all(const TrainEvents& events);
  [[nodiscard]] bool any_rank_stops();
  AfterEvaluation take(std::uint64_t step, const Evaluation& evaluation);
  [[nodiscard]] bool is_patience_over() const;
  [[nodiscard]] std::function<void(std::uint64_t)> saving();
  void save(std::uint64_t step);
  [[nodiscard]] TrainingSummary summary_of(const SummaryOfSteps& steps);

  void tell(const std::function<void()>& event);
  void expect_told(const std::string& state) const;
  void warn(const std::string& sentence);
  void tell_of_ranks();
  void report_broken_files();

  TrainerEvents events_;
  std::stop_source own_stop_;  // requested with that of the user, or when an event has failed
  std::stop_callback<std::function<void()>> users_stop_;
  std::stop_token stop_ = own_stop_.get_token();
  std::exception_ptr failure_;  // of an event in run()
  bool is_running_ = false;     // run() was called

  TensorSource first_values_;  // InitialOptions::values, until they are read
  TrainingInputs inputs_;
  RankWarnings warnings_;
  PlannedSteps steps_;
  std::vector<std::string> zeroed_norms_;
  std::optional<WeightFile> weights_;
  bool has_first_values_ = false;
  bool is_saved_;  // by rank zero, in a folder; the same on all ranks
  std::optional<TrainingFolder> folder_;
  Progress progress_;
  um::Bytes ram_before_;
  std::optional<Session> session_;
};

}  // namespace spillway
