#include "tools/gpu/distinct_convolutions.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>

namespace spillway::gpu {
namespace {

// What makes two convolutions the same.
struct Kind {
  std::size_t operation;  // which one of Operation: the pass
  std::variant<ConvolutionGeometry, TransposedConvolutionGeometry> geometry;
  bool relu = false;

  friend bool operator==(const Kind&, const Kind&) = default;
};

// Nothing for other operations.
std::optional<Kind> kind_of(const Operation& operation) {
  return std::visit(
      [&](const auto& op) -> std::optional<Kind> {
        if constexpr (requires { op.geometry.kernel; }) {
          Kind kind{.operation = operation.index(), .geometry = op.geometry};
          if constexpr (requires { op.relu; }) kind.relu = op.relu;
          return kind;
        }
        return std::nullopt;
      },
      operation);
}

}  // namespace

DistinctConvolutions distinct_convolutions(const Step& whole) {
  DistinctConvolutions distinct;
  distinct.step.graph.data = whole.graph.data;
  std::vector<Kind> kinds;
  for (std::size_t t = 0; t < whole.launches.size(); ++t) {
    const std::optional<Kind> kind = kind_of(whole.launches[t].operation);
    if (!kind) continue;
    const prefetch::Task& task = whole.graph.tasks[t];
    const auto known = std::ranges::find(kinds, *kind);
    if (known != kinds.end()) {
      distinct.tasks[static_cast<std::size_t>(known - kinds.begin())].push_back(task.name);
      continue;
    }
    kinds.push_back(*kind);
    distinct.tasks.push_back({task.name});
    distinct.step.graph.tasks.push_back(task);
    distinct.step.launches.push_back(whole.launches[t]);
  }
  return distinct;
}

}  // namespace spillway::gpu
