#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/simulate/timeline.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::prefetch {

/// A plan of a problem with its proof and its prediction.
struct Answer {
  Plan plan;
  std::optional<um::Nanoseconds> planning;  ///< the planner's time; nullopt for a plan of a file
  um::Bytes peak;     ///< the most near memory in use, under any timing: verify()
  Timeline timeline;  ///< simulate()
};

/// A plan that verify() rejects.
class UnsoundPlan final : public um::Error {
 public:
  /// `plan` names the plan, for the sentence.
  UnsoundPlan(const std::string& plan, const std::string& reason)
      : Error{plan + " must not run: " + reason}, reason_{reason} {}
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

/// Returns `plan`, or one in its place with fixed places for blocks in the copy mode's arena: an
/// arena that is compacted holds up the step while it copies (GoogLeNet at batch 32 under half of
/// its need: 0.17 s of 1.34, and 0.37 s of 1.65 by `capacity`). Asks the planner again with a
/// little less near memory, until the places fit in all of it. Keeps `plan` if that makes the
/// predicted step slower by more than an eighth, or if five plans do not fit. Requires: `plan` is
/// the planner's for `problem`, and verifies, as the result does.
[[nodiscard]] Plan with_fixed_places(const Planner& planner, const Problem& problem, Plan plan);

/// How a problem is answered.
struct AskOptions {
  /// Gives blocks fixed places in the copy mode's arena if that pays: with_fixed_places(). Without
  /// effect unless the problem moves whole blocks.
  bool fixes_places = true;
  bool proves = true;  ///< false: the plan is for its time alone, and Answer::peak is not known
};

/// Asks `planner` for a plan of the problem, proves it and predicts its time. Returns the planner's
/// own estimate of the smallest budget if it has none: smallest_budget() searches for it. Throws:
/// UnsoundPlan; TooManyTasks.
[[nodiscard]] std::variant<Answer, Infeasible> ask(const Planner& planner, const Problem& problem,
                                                   const AskOptions& options = {});

/// Proves `plan` and predicts its time; `name` names it in the sentence of a violation. Throws:
/// UnsoundPlan.
[[nodiscard]] Answer answer_with(Plan plan, const std::string& name, const Problem& problem);

/// The figures that every command tells of an answer, by the names of `plan --json`: planner, peak,
/// times, bytes moved and recomputed tasks.
[[nodiscard]] nlohmann::json to_json(const Answer& answer, const Problem& problem);

}  // namespace spillway::prefetch
