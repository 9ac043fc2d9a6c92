#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/bench/train/train_comparison.h"
#include "src/cli/bench/bench_nets.h"
#include "src/cli/bench/bench_output.h"
#include "src/cli/bench/bench_training_flags.h"
#include "src/ops/backend.h"
#include "um/bytes.h"

namespace spillway::cli {

/// A bench of trainings, from its flags to its file: the command adds rows to the comparison and
/// runs it.
class BenchTraining {
 public:
  /// `flags` must outlive it. `bench` is "train" or "planners". Throws: um::Error when the device
  /// is not there, or an output cannot be written.
  BenchTraining(const BenchTrainingFlags& flags, const std::string& bench);

  [[nodiscard]] TrainComparison& comparison() { return comparison_; }
  /// Of `at`; made when it is first asked for. Throws: um::Error when there is no such network.
  [[nodiscard]] const TrainSubject& subject(const NetAtBatch& at);
  /// A budget that is checked, for `subject`.
  [[nodiscard]] NamedBudget resolve(const std::string& budget, const TrainSubject& subject) const;
  [[nodiscard]] std::vector<NamedBudget> resolve(const std::vector<std::string>& budgets,
                                                 const TrainSubject& subject) const;

  /// Measures, prints the table, writes the file with `options` and the timelines of the networks
  /// at their batches; when interrupted or failing, with the rows so far.
  /// Throws: um::Error where it does not fit the machine, or what was measured broke a budget or
  /// changed losses; Interrupted.
  void run(nlohmann::json options);

 private:
  [[nodiscard]] TrainRoom room() const;
  void report(nlohmann::json options);
  void expect_run_checks() const;
  void expect_reached() const;

  const BenchTrainingFlags& flags_;
  ExecutionContext context_;
  bool is_host_;
  um::Bytes available_;  // near memory
  BenchOutput output_;
  TrainComparison comparison_;
};

}  // namespace spillway::cli
