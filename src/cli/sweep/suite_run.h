#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "src/sweep/goals.h"
#include "src/sweep/point.h"

namespace spillway::cli {

/// What of suite S is evaluated.
struct SuiteRequest {
  std::vector<std::string> networks;  ///< of the suite; empty: all
  std::vector<std::string> machines;  ///< empty: the suite's
  int threads = 0;
};

/// What it gave.
struct SuiteResult {
  std::vector<Point> moving;
  std::vector<Point> mixed;
  std::vector<Point> algorithms;
  std::vector<Point> large;
  std::vector<Goal> goals;
};

/// Evaluates suite S and judges the goals; progress goes to standard error. When `stop` is
/// requested, judges what there is. Throws: um::Error.
[[nodiscard]] SuiteResult run_suite(const SuiteRequest& request, const std::stop_token& stop);

}  // namespace spillway::cli
