#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "prefetch/files/machine.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/run/kept_profiles.h"
#include "src/run/measured_profile.h"

namespace spillway {

/// The source of the times of a run's tasks.
struct TimesOptions {
  std::string file;  ///< a profile of a micro-batch's step; empty: tasks are measured
  /// A cache_folder() with times that were measured before; empty: they are measured each time.
  std::string cache;
  bool adds_to_cache = true;  ///< what is measured
};

/// Returns the built-in machine that stands for `device` before anything is measured. Calls
/// `on_unknown`, if there is one, with a sentence where no times of the device are built in.
[[nodiscard]] prefetch::Machine modelled_machine(
    const um::Device& device, const std::function<void(const std::string&)>& on_unknown = {});

/// The times of a run's tasks: of a file, of an earlier run, measured, or a model's where no plan
/// depends on them.
class StepTimes {
 public:
  /// Each may be empty.
  struct Events {
    OnProgress on_measuring;
    std::function<void(const std::string& sentence)> on_warning;
  };
  /// The context must outlive it. `title` says what is trained, for the cache; `ranks` are those
  /// that measure on this machine at once.
  StepTimes(TimesOptions options, ExecutionContext& context, std::string title, std::size_t ranks,
            Events events, std::stop_token stop)
      : options_{std::move(options)},
        context_{context},
        title_{std::move(title)},
        ranks_{ranks},
        events_{std::move(events)},
        stop_{std::move(stop)} {}

  /// Returns the profile of the training step of `wanted.workload`. `profiled` makes the graph that
  /// a profile file is of: the step of one micro-batch, with its state near. Measures if a plan
  /// depends on times, or if it `is_needed`. Throws: as measure_profile(); um::Error when the file
  /// cannot be used.
  [[nodiscard]] prefetch::Profile find(const Measurement& wanted,
                                       const std::function<prefetch::TaskGraph()>& profiled,
                                       bool is_needed);

  /// Returns whether those found last are of this machine or of a file; else no plan depends on
  /// them.
  [[nodiscard]] bool are_timed() const { return are_timed_; }
  /// Returns when they were measured, if an earlier run kept them: "2026-11-29 19:10 UTC".
  [[nodiscard]] const std::optional<std::string>& kept_since() const { return kept_since_; }
  /// Makes the next run measure them anew. Returns whether they were kept.
  [[nodiscard]] bool forget() const;

 private:
  [[nodiscard]] prefetch::Profile kept_or_measured(const Measurement& wanted);
  void keep(const Workload& workload, const prefetch::Profile& profile) const;

  TimesOptions options_;
  ExecutionContext& context_;
  std::string title_;
  std::size_t ranks_;
  Events events_;
  std::stop_token stop_;
  bool are_timed_ = true;
  std::optional<ProfileKey> key_;  // of profiles that are kept
  std::optional<std::string> kept_since_;
};

}  // namespace spillway
