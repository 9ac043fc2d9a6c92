#pragma once

#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/plan/micro_batch_choice.h"
#include "src/plan/plans.h"

namespace spillway::cli {

/// The flags that say how to plan: --budget, --planner, --recompute, --state, --update.
struct PlanFlags {
  std::string budget = "auto";
  std::string planner = "joint";
  std::string recompute = "auto";
  std::string state = "auto";
  std::string update = "auto";

  void add_to(CLI::App& app);

  [[nodiscard]] StateRule state_rule(MemoryMode memory) const;
  [[nodiscard]] UpdateRule update_rule(MemoryMode memory) const;
  [[nodiscard]] PlanRequest request(MemoryMode memory) const;
};

/// The flag --no-cache of what measures before it plans.
struct CacheOption {
  bool measures_anew = false;

  void add_to(CLI::App& app);
  /// Returns TimesOptions::cache: empty where the flag is given, and where tests measure for a
  /// short time.
  [[nodiscard]] std::string folder() const;
};

/// "times measured on 2026-11-29 10:00, kept in ~/.cache/spillway; --no-cache measures anew\n", or
/// nothing where none were kept `since`.
[[nodiscard]] std::string describe_kept_times(const std::optional<std::string>& since,
                                              const std::string& cache);

/// Complains about what is no budget; a check of CLI11's.
[[nodiscard]] std::string check_budget(const std::string& text);

/// Complains about a name of no planner; a check of CLI11's.
[[nodiscard]] std::string check_planner(const std::string& name);

/// The flags --micro-batches and --micro-batch-size.
struct MicroBatchFlags : MicroBatchChoice {
  /// `more` goes on where the help of --micro-batches ends.
  void add_to(CLI::App& app, const std::string& more);
};

}  // namespace spillway::cli
