#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "src/ranks/communicator.h"
#include "src/train/checkpoint/checkpoint.h"
#include "um/bytes.h"

namespace spillway {

/// The plans of the checkpoint that a training goes on from. It goes on with them where it is
/// planned as they were; otherwise new plans keep their algorithms, on which its bits depend.
///
/// All ranks have the plans of rank zero. These do not fit the steps of another number of ranks,
/// nor all ranks where some have more micro-batches than others.
class KeptPlans {
 public:
  KeptPlans() = default;  ///< there are none
  /// Reads `files`, one or those of parts of a step in order, of a training with `settings`, on
  /// rank zero; other ranks give neither. All ranks call this, and the functions that say so.
  /// `communicator` must outlive it. Throws: on all ranks, um::Error when a file cannot be read.
  KeptPlans(Communicator& communicator, const std::vector<std::string>& files,
            KeptSettings settings = {});

  [[nodiscard]] bool are_there() const { return !plans_.empty(); }

  /// Returns whether they are of the training step of one of the workloads of `choice`.
  [[nodiscard]] bool are_of(const StateChoice& choice) const;

  /// Returns the budget of their whole run if `asked`, a text as in MemoryOptions::budget, asks for
  /// the same; otherwise nullopt.
  [[nodiscard]] std::optional<um::Bytes> budget(const std::string& asked,
                                                const StateChoice& choice) const;

  /// How a training is planned otherwise than the checkpoint's was.
  struct Difference {
    std::string text;               ///< "1 thread, not 2"; empty: it is not
    bool rounds_otherwise = false;  ///< results can differ by it, even with the same algorithms
  };
  /// Returns the difference to a training with the settings `now` within `limit`, as rank zero
  /// finds it. All ranks call it.
  [[nodiscard]] Difference difference(const KeptSettings& now, um::Bytes limit) const;

  /// Returns the plans as answer() does, if every rank can use them within `budget`; otherwise
  /// nullopt on all ranks, which all call it.
  [[nodiscard]] std::optional<Plans> use(const Workload& workload, const prefetch::Profile& profile,
                                         um::Bytes budget, const PlanRequest& request) const;

  /// `profile` of the step of `workload` by which planners keep each task's algorithm, where near
  /// memory lets them: all others take a thousand times as long.
  [[nodiscard]] prefetch::Profile favour(const Workload& workload, prefetch::Profile profile) const;

  /// Says that there is a new `plan` because of `difference`, and whether results can be rounded
  /// otherwise than by the old ones.
  [[nodiscard]] std::string departure(const Difference& difference, const Workload& workload,
                                      const prefetch::Plan& plan) const;

 private:
  using Algorithms = std::unordered_map<std::string, std::string>;  // by task
  struct Kept {
    std::string name;
    std::string text;
    Algorithms algorithms;
  };
  // Checkpoints of earlier versions have a plan for each kind of part of a batch.
  [[nodiscard]] bool are_of_parts() const { return plans_.size() > 1; }
  [[nodiscard]] std::string_view kept_algorithm(const prefetch::Task& task) const;
  [[nodiscard]] PlanOfFile read(const Workload& workload) const;

  std::reference_wrapper<Communicator> communicator_ = self_communicator();
  std::vector<Kept> plans_;
  KeptSettings settings_;  // on rank zero
};

}  // namespace spillway
