#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "prefetch/placement/placed_step.h"
#include "prefetch/planner.h"
#include "prefetch/planners/answer.h"
#include "src/cli/flags/rank_flags.h"
#include "src/cli/plan_subject.h"
#include "src/plan/plans.h"
#include "um/bytes.h"

namespace spillway::cli {

/// Returns the JSON of `spillway plan` for a verified plan.
[[nodiscard]] nlohmann::json figures_of(const prefetch::Answer& answer, const PlanSubject& subject,
                                        um::Bytes budget, const PlanRequest& request);

/// Adds OOC-Paleo's prediction for the same step.
void add_paleo(const prefetch::Answer& answer, const PlanSubject& subject, nlohmann::json& figures);

/// Returns {"extent_bytes":…,"arena_bytes":…,"fits":…}.
[[nodiscard]] nlohmann::json places_json(const prefetch::ArenaUse& use);

/// Returns "fixed places in 1.20 GiB of 1.25 GiB" for people. `use` comes from places_json().
[[nodiscard]] std::string describe_places(const nlohmann::json& use);

/// Returns "smallest feasible 433 KiB, all near 1.22 MiB", of `need`. A run that moves nothing
/// (`is_resident`) has no smaller budget than all near.
[[nodiscard]] std::string describe_need(const prefetch::NearNeed& need, bool is_resident);

/// Prints the figures for people, one per line.
void print_figures(const nlohmann::json& figures);

/// Returns the figures of several ranks, beside those of one rank: the member "ranks".
///
/// Makes two more plans within `budget`. One is for a single rank's step from `flags` (or the
/// smallest budget that works for it). The other is for the step of `subject` with free exchanges,
/// simulated afterwards with their cost.
/// `samples` is the size of a rank's batch; 0 for a trace, which does not say.
[[nodiscard]] nlohmann::json rank_figures(const RankFlags& ranks, const SubjectFlags& flags,
                                          const prefetch::Answer& answer,
                                          const PlanSubject& subject, um::Bytes budget,
                                          const PlanRequest& request, std::size_t samples);

/// Prints the figures of ranks for people; `budget` is the plan's.
void print_ranks(const nlohmann::json& ranks, um::Bytes budget);

/// Plans a batch within `budget`, verifies and simulates it, with state near or far,
/// whichever is faster. Changes `subject` to the step that was planned. Throws: BudgetTooSmall.
[[nodiscard]] prefetch::Answer plan_best(PlanSubject& subject, um::Bytes budget,
                                         const PlanRequest& request);

/// Returns the plan in the file at `path`, verified and simulated. Changes `subject` to the step
/// that the plan is for. Throws: um::Error where it is for another step, or does not verify.
[[nodiscard]] prefetch::Answer plan_of_file(PlanSubject& subject, const std::string& path,
                                            const PlanRequest& request);

}  // namespace spillway::cli
