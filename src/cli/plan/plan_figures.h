#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "prefetch/bounds/bounds.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/simulate/timeline.h"
#include "src/cli/plan/plan_subject.h"
#include "src/cli/plan/rank_flags.h"
#include "src/plan/plans.h"
#include "src/plan/sub_batch_plans.h"
#include "um/bytes.h"

namespace spillway::cli {

/// A plan and everything that is said about it.
struct Planned {
  prefetch::Plan plan;
  um::Nanoseconds planning{0};
  um::Bytes peak;
  prefetch::Timeline timeline;
  prefetch::Bounds bounds;
};

/// What `spillway plan` says about a verified plan of a whole batch.
[[nodiscard]] nlohmann::json figures_of(const Planned& planned, const PlanSubject& subject,
                                        um::Bytes budget);

/// Adds what OOC-Paleo says of the same step.
void add_paleo(const Planned& planned, const PlanSubject& subject, nlohmann::json& figures);

/// Prints the figures for people, one line each: those of a batch in one or in sub-batches, with
/// how many of these there are.
void print_figures(const nlohmann::json& figures);

/// What `spillway plan` says about a batch in sub-batches: the keys of a batch in one, with times
/// and moved bytes summed over the whole batch, the peak the highest, and what the run needs.
/// `subject` is what is planned, for messages; `planning` is how long that took. Throws: um::Error
/// if a plan does not verify.
[[nodiscard]] nlohmann::json figures_of(std::span<const PlannedSubStep> steps,
                                        const SubBatchPlanner& planner,
                                        const prefetch::NearNeed& need, const std::string& subject,
                                        um::Nanoseconds planning);

/// What is said about the ranks of a plan, beside what is said about one of them: the member
/// "ranks" of the figures.
///
/// Two more plans are made for it within `budget`: of one rank's step, made of `flags` (or within
/// the smallest budget that it can keep), and of the step of `subject` by who takes exchanges to
/// cost nothing, which is then simulated with them.
/// `samples` are those of a rank's batch; 0 where nobody knows, of a trace.
[[nodiscard]] nlohmann::json rank_figures(const RankFlags& ranks, const SubjectFlags& flags,
                                          const Planned& planned, const PlanSubject& subject,
                                          um::Bytes budget, const PlanRequest& request,
                                          std::size_t samples);

/// Prints them for people; `budget` is that of the plan.
void print_ranks(const nlohmann::json& ranks, um::Bytes budget);

/// What is planned, for messages: "vgg16 at batch 256 on v100".
[[nodiscard]] std::string description(const PlanSubject& subject);

/// The plan of a whole batch within `budget`, verified and simulated, with state near or far,
/// whichever is faster; `subject` is then what was planned. Throws: BudgetTooSmall.
[[nodiscard]] Planned plan_best(PlanSubject& subject, um::Bytes budget, const PlanRequest& request);

}  // namespace spillway::cli
