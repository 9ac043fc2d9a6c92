#include "src/execute/workspace_buffer.h"

#include <algorithm>
#include <functional>
#include <set>
#include <variant>

#include "prefetch/verify/verify.h"

namespace spillway {
namespace {

using prefetch::StepLayout;
using um::Bytes;

// Without the workspaces that lie in the buffer, the plan must keep a budget that is smaller by it.
bool has_room(const StepLayout& layout, Bytes buffer) {
  if (buffer >= layout.plan.budget) return false;
  prefetch::TaskGraph graph = layout.graph;
  for (prefetch::Task& task : graph.tasks) {
    for (prefetch::Algorithm& algorithm : task.algorithms) {
      const Bytes workspace = layout.block_sizes.workspace_size(algorithm.workspace);
      if (workspace > Bytes{} && workspace <= buffer) algorithm.workspace = Bytes{};
    }
  }
  prefetch::Plan plan = layout.plan;
  plan.graph = prefetch::fingerprint(graph);
  plan.budget -= buffer;
  return std::holds_alternative<prefetch::Verified>(prefetch::verify(graph, plan));
}

}  // namespace

um::Bytes workspace_buffer(std::span<const StepLayout* const> layouts) {
  std::set<Bytes, std::greater<>> sizes;
  for (const StepLayout* layout : layouts) {
    if (layout->plan.residency != prefetch::Residency::kPlanned) return {};
    for (const prefetch::RunLayout& run : layout->runs) sizes.insert(run.workspace);
  }
  const auto found = std::ranges::find_if(sizes, [&](Bytes size) {
    return std::ranges::all_of(layouts,
                               [&](const StepLayout* each) { return has_room(*each, size); });
  });
  return found == sizes.end() ? Bytes{} : *found;
}

}  // namespace spillway
