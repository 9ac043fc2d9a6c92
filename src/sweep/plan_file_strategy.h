#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "prefetch/planner.h"

namespace spillway {

/// A plan that a file holds, as a strategy: what makes plans elsewhere can be compared with
/// planners here. It is the same plan under every budget that it keeps.
class PlanFileStrategy final : public prefetch::Planner {
 public:
  explicit PlanFileStrategy(std::string path);

  /// The file's, without its folder.
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view description() const override { return "the plan of a file"; }
  /// Throws: um::Error when the file cannot be read, is of another network, batch or machine, does
  /// not verify, or moves what the problem's memory mode cannot.
  [[nodiscard]] std::variant<prefetch::Plan, prefetch::Infeasible> plan(
      const prefetch::Problem& problem) const override;

 private:
  std::string path_;
  std::string name_;
};

}  // namespace spillway
