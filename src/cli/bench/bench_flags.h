#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/bench/repetition.h"

namespace spillway::cli {

/// The flags that all benches have: --json, --quick, and how often each figure is measured. What
/// they are set to before add_to() are the defaults.
struct BenchFlags {
  std::string json;
  bool quick = false;  ///< small sizes and few runs, to see that it works
  std::size_t repeats = 30;
  double deviation = 0.03;
  double seconds = 1;

  void add_to(CLI::App& command);

  /// With --quick, at most two runs count, and none begins after a tenth of a second.
  [[nodiscard]] Repetition repetition() const;
};

/// The flags of `command` as a bench file keeps them: by name without dashes, as given or else
/// their defaults; numbers as numbers.
[[nodiscard]] nlohmann::json flags_json(const CLI::App& command);

}  // namespace spillway::cli
