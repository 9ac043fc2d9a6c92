#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/task_graph.h"
#include "src/cli/flags/cli11.h"
#include "src/plan/plans.h"
#include "src/program/passes.h"

namespace spillway::cli {

/// The flag --bucket: how gradients are put together to be exchanged between ranks.
struct BucketFlag {
  std::string size = "25MiB";

  CLI::Option* add_to(CLI::App& app, const std::string& group);

  /// Whether plans choose others than rule() where those are faster.
  [[nodiscard]] bool is_auto() const { return size == "auto"; }
  [[nodiscard]] prefetch::BucketRule rule() const;
};

/// The buckets of gradients of `graph`, which `rule` made, for programs: members of an object.
[[nodiscard]] nlohmann::json buckets_json(const prefetch::TaskGraph& graph,
                                          const prefetch::BucketRule& rule, bool is_chosen);
/// The same for people: "7 buckets of at least 10 MiB, the first of 1 MiB (auto)".
[[nodiscard]] std::string describe_buckets(const nlohmann::json& buckets);

/// The flag --zero: what is divided among ranks, by the stages of ZeRO.
struct ZeroFlag {
  std::size_t stage = 0;

  CLI::Option* add_to(CLI::App& app, const std::string& group);

  [[nodiscard]] bool divides_optimizer() const { return stage > 0; }
};

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

  /// Throws: um::Error when a single rank is given flags of exchanges, or several ranks have no
  /// bandwidth.
  void expect_used() const;
  [[nodiscard]] bool are_several() const { return ranks > 1; }
  /// Requires: several ranks; expect_used().
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
