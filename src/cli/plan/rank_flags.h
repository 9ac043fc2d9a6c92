#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/interconnect.h"
#include "src/cli/flags/bucket_flag.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/zero_flag.h"
#include "src/plan/plans.h"
#include "src/step/divided_updates.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace spillway::cli {

/// The flags that make a plan that of one of several ranks: how many, and what they exchange
/// gradients over.
struct RankFlags {
  std::uint32_t ranks = 1;
  std::string bandwidth;
  std::string latency = "5us";
  std::string exchange_on = "link";
  double compute_speed = 1;
  BucketFlag bucket;
  ZeroFlag zero;

  void add_to(CLI::App& app);

  /// Throws: um::Error where one rank, which has nobody to exchange with, is given how.
  void expect_used() const;
  [[nodiscard]] bool are_several() const { return ranks > 1; }
  /// Throws: um::Error where several ranks have no bandwidth.
  [[nodiscard]] prefetch::Interconnect interconnect() const;
  /// Of the first rank; those of the others have the same graph.
  [[nodiscard]] OptimizerDivision division() const {
    return {.rank = 0, .ranks = zero.divides_optimizer() ? ranks : 1};
  }

 private:
  std::vector<const CLI::Option*> between_;  // ranks: of no use to one
};

/// Throws: um::Error when plans of several ranks cannot do what `request` asks for.
void expect_exchangeable(const PlanRequest& request);

}  // namespace spillway::cli
