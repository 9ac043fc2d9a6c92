#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planner.h"
#include "src/step/machine_size_model.h"
#include "src/step/step.h"
#include "tests/prefetch/planned.h"
#include "tests/um/cuda/late_steps.h"
#include "tests/um/cuda/swapped_block.h"

namespace spillway::um {

/// A network of the catalogue on an H200. The memory is a tenth more than the least that any plan
/// needs, or `percent` of the need when nothing moves.
struct TightStep {
  TightStep(const std::string& name, std::size_t batch, LateMode mode, std::uint64_t percent = 0,
            bool has_far_state = false)
      : step{make_step(name, batch, has_far_state)},
        profile{prefetch::model_profile(step.graph, prefetch::find_machine("h200"))} {
    const auto need = near_need(step.graph, prefetch::BlockSizes{step.graph, kPage});
    const Bytes budget = percent == 0 ? Bytes{need.smallest.count() * 11 / 10}
                                      : Bytes{need.resident.count() * percent / 100};
    plan = prefetch::testing::planned("joint", {.graph = step.graph,
                                                .profile = profile,
                                                .budget = budget,
                                                .page = kPage,
                                                .whole_blocks = mode == LateMode::kCopy,
                                                .may_recompute = true});
  }
  static Step make_step(const std::string& name, std::size_t batch, bool has_far_state) {
    Step made = make_training_step(
        nets::build_network(name, {.image = nets::Shape{3, 32, 32}, .classes = 10}),
        MachineSizeModel{}, {.batch = batch});
    for (prefetch::DataBlock& block : made.graph.data) {
      if (block.kind == prefetch::DataKind::kState) block.is_offloadable = has_far_state;
    }
    return made;
  }
  [[nodiscard]] std::ptrdiff_t recomputations() const {
    return std::ranges::count_if(plan.runs, &prefetch::TaskRun::is_recomputation);
  }

  const Step step;
  const prefetch::Profile profile;
  prefetch::Plan plan;
};

}  // namespace spillway::um
