#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/interconnect.h"
#include "src/cli/flags/bucket_flag.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/zero_flag.h"
#include "src/plan/plans.h"
#include "src/step/shard_steps.h"

namespace spillway::cli {

/// Flags for a plan of one of several ranks: their number, and the interconnect for gradients.
struct RankFlags {
  std::uint32_t ranks = 1;
  std::string bandwidth;
  std::string latency = "5us";
  std::string exchange_on = "link";
  double compute_speed = 1;
  BucketFlag bucket;
  ZeroFlag zero;

  void add_to(CLI::App& app);

  /// Throws: um::Error where a single rank is given flags of exchanges.
  void expect_used() const;
  [[nodiscard]] bool are_several() const { return ranks > 1; }
  /// Throws: um::Error where several ranks have no bandwidth.
  [[nodiscard]] prefetch::Interconnect interconnect() const;
  /// The division for the first rank; all ranks have the same graph.
  [[nodiscard]] OptimizerDivision division() const {
    return {.rank = 0, .ranks = zero.divides_optimizer() ? ranks : 1};
  }

 private:
  std::vector<const CLI::Option*> between_;  // flags that need several ranks
};

/// Throws: um::Error when plans of several ranks do not support `request`.
void expect_exchangeable(const PlanRequest& request);

}  // namespace spillway::cli
