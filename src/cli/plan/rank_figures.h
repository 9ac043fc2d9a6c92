#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "src/cli/plan/plan_figures.h"
#include "src/cli/plan/plan_subject.h"
#include "src/cli/plan/rank_flags.h"
#include "src/plan/plans.h"
#include "um/bytes.h"

namespace spillway::cli {

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

}  // namespace spillway::cli
