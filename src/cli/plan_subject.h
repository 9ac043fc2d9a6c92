#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "nets/network.h"
#include "prefetch/machine.h"
#include "prefetch/profile.h"
#include "prefetch/trace.h"
#include "src/backend.h"
#include "src/cli/cli11.h"
#include "src/cli/processor_options.h"
#include "src/cli/workload_options.h"
#include "src/step_to_plan.h"
#include "src/workload.h"
#include "um/bytes.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// A step to plan, how long its parts take, and where it comes from: a network or a trace.
struct PlanSubject {
  std::unique_ptr<const Workload> workload;      ///< null where it is a trace
  std::optional<nets::Network> network;          ///< what `workload` was made from
  std::shared_ptr<const Sizing> sizing;          ///< likewise
  std::optional<prefetch::Machine> machine;      ///< where times are modelled, not read
  std::unique_ptr<const prefetch::Trace> trace;  ///< null where it is a network
  StepToPlan step;
  prefetch::Profile profile;
  um::Bytes available;      ///< near memory there is
  std::string title;        ///< for people: "vgg16 at batch 256"
  nlohmann::json identity;  ///< the same for programs
};

/// The flags that say what to plan, and for which machine: --net and its kin or --trace-in;
/// --machine or --profile, --link-bandwidth.
struct SubjectOptions {
  WorkloadOptions workload;
  ProcessorOptions processor;
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
