#include "src/plan/resident_need.h"

#include <algorithm>
#include <cstddef>

#include "prefetch/runtime/step_layout.h"

namespace spillway {

using um::Bytes;

Bytes resident_need(const Workload& workload, const Plans& plans) {
  Bytes state;
  Bytes buffer;
  Bytes slab;
  const auto add = [&](const prefetch::TaskGraph& graph, const prefetch::Plan& plan) {
    const prefetch::StepLayout layout{graph, plan};
    const Bytes own = prefetch::PinnedBlocks::buffer_size(layout.graph, layout.block_sizes);
    state = std::max(state, layout.block_sizes.pinned() - own);
    buffer = std::max(buffer, own);
    slab = std::max(slab, layout.placement.extent);
  };
  for (std::size_t i = 0; i < plans.training.size(); ++i) {
    add(workload.training_steps()[i].step.graph, plans.training[i]);
  }
  add(workload.evaluation().graph, plans.evaluation);
  return workload.beside() + state + buffer + slab;
}

}  // namespace spillway
