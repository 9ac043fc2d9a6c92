#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/sweep/point.h"

namespace spillway {

/// One number of a goal.
struct Measure {
  std::string name;             ///< "max", "mean"
  double value = 0;             ///< not looked at where there are no points
  std::optional<double> limit;  ///< at most this; nothing: told, not judged
};

/// What the product must reach, and what it did.
struct Goal {
  std::string name;               ///< "G1"
  std::string what;               ///< in words
  std::vector<Measure> measures;  ///< the first is the goal's main one
  std::size_t points = 0;         ///< it was judged on
  std::size_t missing = 0;        ///< points for which there was no plan or no makespan
  bool is_partial = false;        ///< not all that it is about was evaluated
};

/// True when all that the goal is about was evaluated, no point is missing, and every measure that
/// has a limit keeps it.
[[nodiscard]] bool is_met(const Goal& goal);

/// What the goals are judged by: all of it, or what was evaluated.
struct SuitePoints {
  std::span<const Point> moving;      ///< plans that only move, over suite S
  std::span<const Point> mixed;       ///< plans that also recompute, over suite S
  std::span<const Point> algorithms;  ///< joint choice of algorithms
  std::span<const Point> large;       ///< more than 8000 tasks
};

/// G1: plans that only move over LB2. G2: mixed plans over LB2mix where p >= 1, with the hard
/// points (some bound above 1.001 of the arithmetic) apart. G3: mixed plans over Beaumont's
/// Proposition 3. G1, G2 and G4 tell the ratio to the bounds with TransitionBound, too. G4: mixed
/// plans over LB2mix at p = 0. G5: planning time. G6: joint choice of algorithms. G7: memory
/// violations, and what noise costs. A goal is partial where points of the suite that it is about
/// are not there (suite.h).
[[nodiscard]] std::vector<Goal> judge_goals(const SuitePoints& points);

}  // namespace spillway
