#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "prefetch/gradient_exchange.h"
#include "prefetch/task_graph.h"
#include "src/cli/flags/cli11.h"

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

}  // namespace spillway::cli
