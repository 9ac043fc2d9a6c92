#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/cli/flags/cli11.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flags --noise and --seed: how a plan fares when no task takes exactly its time.
struct NoiseFlags {
  std::string noise;
  std::uint64_t seed = 0;

  void add_to(CLI::App& app);

  [[nodiscard]] bool is_wanted() const { return !noise.empty(); }
  /// Simulates the plan five times, each task's time multiplied by a number drawn around 1: mean
  /// and worst makespan. Requires: is_wanted().
  [[nodiscard]] nlohmann::json try_out(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                                       const prefetch::Profile& profile) const;
};

}  // namespace spillway::cli
