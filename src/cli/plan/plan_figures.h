#pragma once

#include <nlohmann/json.hpp>

#include "prefetch/bounds/bounds.h"
#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "src/cli/plan/plan_subject.h"
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

}  // namespace spillway::cli
