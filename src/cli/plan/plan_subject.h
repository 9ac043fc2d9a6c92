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
#include "prefetch/profile.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/step_to_plan.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// A step to plan, how long its parts take, and where it comes from: a network or a trace.
struct PlanSubject {
  std::unique_ptr<const Workload> workload;     ///< null where it is a trace
  std::optional<nets::Network> network;         ///< what `workload` was made from
  std::shared_ptr<const SizeModel> size_model;  ///< likewise
  std::optional<prefetch::Machine> machine;     ///< where times are modelled, not read
  std::unique_ptr<const StateChoice> state;     ///< of `workload`; null where there is no choice
  /// Null where it is a network; shared with the same of several ranks.
  std::shared_ptr<const prefetch::Trace> trace;
  std::optional<StepToPlan> step;  ///< always there
  prefetch::Profile profile;
  um::Bytes available;      ///< near memory there is
  std::string title;        ///< for people: "vgg16 at batch 256"
  nlohmann::json identity;  ///< the same for programs
  /// Of `trace`, with far updates or with exchanges.
  std::unique_ptr<const prefetch::TaskGraph> other_trace;
  std::optional<prefetch::BucketRule> buckets;  ///< of its exchanges, where there are several ranks
  std::optional<prefetch::Profile> times;       ///< as given, where `profile` is of another graph

  /// The same as the step of one of several ranks. Requires: choose_state() follows. Throws:
  /// um::Error where there is nothing to exchange, or to divide.
  [[nodiscard]] PlanSubject exchanged(const prefetch::Interconnect& interconnect,
                                      const prefetch::BucketRule& rule,
                                      const OptimizerDivision& division) const;
  /// Lets plans of its network move its state where `request` does, and update it on the far side;
  /// of a trace the latter only where that is asked for.
  void choose_state(const PlanRequest& request);
  /// Makes the training step of `chosen`, a workload of `state`, the one to plan.
  void use(const Workload& chosen);
  /// Makes the trace's step with far updates the one to plan. Throws: um::Error.
  void update_trace_far(const PlanRequest& request);
  /// Times of the step whose state stays near: the base of ratios.
  [[nodiscard]] const prefetch::Profile& all_near() const { return times ? *times : profile; }
  /// What budgets are relative to.
  [[nodiscard]] prefetch::NearNeed need() const { return state ? state->need() : step->need; }

 private:
  void exchange_trace(const prefetch::BucketRule& rule);
};

/// The flags that say what to plan, and for which machine: --net and its kin or --trace-in;
/// --machine or --profile, --link-bandwidth.
struct SubjectFlags {
  WorkloadFlags workload;
  DeviceFlags device;
  std::string trace;
  bool offload_weights = false;
  std::string machine;
  std::string profile;
  std::string link_bandwidth;

  void add_to(CLI::App& app);

  /// Reads and builds it all. Throws: CLI::RequiredError when there is nothing to plan; um::Error
  /// when a file is wrong.
  [[nodiscard]] PlanSubject open() const;

 private:
  [[nodiscard]] PlanSubject open_trace() const;
  [[nodiscard]] PlanSubject open_network() const;
};

}  // namespace spillway::cli
