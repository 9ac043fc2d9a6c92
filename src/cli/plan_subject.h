#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "nets/network.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/trace.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/planners/variant_search.h"
#include "prefetch/profile.h"
#include "prefetch/varied_step.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "src/program/passes.h"
#include "um/bytes.h"

namespace spillway::cli {

/// A step to plan, with its times and its source: a network or a trace.
struct PlanSubject {
  std::unique_ptr<const Workload> workload;     ///< null for a trace
  std::optional<nets::Network> network;         ///< source of `workload`
  StepOptions step_options{};                   ///< what `workload` was made with
  std::shared_ptr<const SizeModel> size_model;  ///< sizes for `workload`
  std::optional<prefetch::Machine> machine;     ///< if times are modelled, not read
  std::unique_ptr<const StateChoice> state;     ///< of `workload`; null without a choice
  /// Null for a network; shared with the subjects of several ranks.
  std::shared_ptr<const prefetch::Trace> trace;
  std::optional<StepToPlan> step;  ///< always set
  prefetch::Profile profile;
  um::Bytes available;      ///< available near memory
  std::string title;        ///< for people: "vgg16 at batch 256"
  nlohmann::json identity;  ///< the same as JSON
  /// The graph of `trace` in other variants, or with far updates or exchanges.
  std::unique_ptr<const prefetch::TaskGraph> other_trace;
  std::optional<prefetch::BucketRule> buckets;  ///< of exchanges, if there are several ranks
  std::optional<prefetch::Interconnect> exchanges_on{};  ///< if `trace` is of several ranks
  bool updates_trace_far = false;
  std::optional<prefetch::Profile> times;  ///< original times, if `profile` is for another graph

  /// Throws: um::Error where there are no times of other batch sizes.
  void expect_modelled() const;
  /// Returns the same network with its batch cut. Requires: choose_state() follows. Throws: as
  /// expect_modelled().
  [[nodiscard]] PlanSubject cut(const StepOptions& step, const prefetch::BatchCut& batches) const;
  /// How the batch is cut; a trace is one batch.
  [[nodiscard]] prefetch::BatchCut batches() const;
  /// Returns the same step as one of several ranks. Requires: choose_state() follows. Throws:
  /// um::Error where no gradients are exchanged, or a trace is to be divided.
  [[nodiscard]] PlanSubject exchanged(const prefetch::Interconnect& interconnect,
                                      const prefetch::BucketRule& rule,
                                      const OptimizerDivision& division) const;
  /// Lets plans of the network move state and update it on the far side, where `request` does. For
  /// a trace, allows far updates only on request, and lets its variants be chosen.
  void choose_state(const PlanRequest& request);
  /// Makes the training step of `chosen`, a workload of `state`, the step to plan.
  void use(const Workload& chosen);
  /// True if the plans of `request` choose the variants of a trace's tasks.
  [[nodiscard]] bool chooses_variants(const PlanRequest& request) const;
  /// Returns the trace's step in these variants, with the exchanges and far updates of this one.
  [[nodiscard]] prefetch::ChosenStep step_of(const prefetch::VariantChoice& choice) const;
  /// Makes a step of the trace the step to plan. Budgets stay relative to the same need.
  void use(prefetch::ChosenStep chosen);
  /// Times of the step with state kept near: the base of ratios.
  [[nodiscard]] const prefetch::Profile& all_near() const { return times ? *times : profile; }
  /// The need that budgets are relative to.
  [[nodiscard]] prefetch::NearNeed need() const { return state ? state->need() : step->need; }
  /// Takes the smallest budget, and the task that decides it, from `graph`, which is the step in
  /// some variants. Requires: a trace.
  void need_at_least(const prefetch::TaskGraph& graph);

 private:
  void update_trace_far(const PlanRequest& request);
  void set_smallest_of_variants();
};

/// Flags for what to plan and for which machine: --net and related ones or --trace-in; --machine or
/// --profile, --link-bandwidth.
struct SubjectFlags {
  WorkloadFlags workload;
  DeviceFlags device;
  std::string trace;
  bool offload_weights = false;
  std::string machine;
  std::string profile;
  std::string link_bandwidth;

  void add_to(CLI::App& app);

  /// Reads and builds the subject, with the times it has in that memory mode. Throws:
  /// CLI::RequiredError when no subject is given; um::Error when a file is wrong.
  [[nodiscard]] PlanSubject open(MemoryMode memory) const;

 private:
  [[nodiscard]] PlanSubject open_trace() const;
  [[nodiscard]] PlanSubject open_network(MemoryMode memory) const;
};

}  // namespace spillway::cli
