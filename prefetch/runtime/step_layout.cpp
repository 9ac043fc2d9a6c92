#include "prefetch/runtime/step_layout.h"

#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

um::Access access_of(const BlockAccess& access) {
  if (!access.writes) return um::Access::kRead;
  return access.reads ? um::Access::kReadWrite : um::Access::kWrite;
}

void expect_sound(const StatePlaces& state, const TaskGraph& graph, const BlockSizes& block_sizes) {
  um::expects(state.offsets.size() == graph.data.size(), "one state offset a block");
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].kind != DataKind::kState || !block_sizes.is_movable(DataId(i))) continue;
    um::expects(state.offsets[i].count() % block_sizes.page().count() == 0 &&
                    state.offsets[i] + block_sizes.size(DataId(i)) <= state.extent,
                "state in whole pages, within its extent");
  }
}

}  // namespace

StepLayout::StepLayout(const TaskGraph& task_graph, const Plan& step_plan)
    : StepLayout{task_graph, step_plan,
                 place_state(task_graph, BlockSizes{task_graph, step_plan.page})} {}

StepLayout::StepLayout(const TaskGraph& task_graph, const Plan& step_plan, StatePlaces places)
    : graph{task_graph},
      plan{step_plan},
      block_sizes{task_graph, step_plan.page},
      runs(step_plan.runs.size()),
      state{std::move(places)},
      home{task_graph, block_sizes, step_plan} {
  expect_sound(state, graph, block_sizes);
  const std::vector<Life> lives = find_lives(graph, plan.runs);
  placement = place(graph, block_sizes, plan.runs, lives, state);
  for (const Life& life : lives) {
    if (!block_sizes.is_movable(life.data)) continue;
    for (const BlockAccess& access : life.accesses) {
      runs[access.position].operands.push_back({.data = life.data, .access = access_of(access)});
    }
    if (life.outlives_step()) {
      used_state_.push_back(life.data);
      if (life.is_sent) runs[life.begin()].begins.push_back(life.data);
      continue;
    }
    runs[life.begin()].begins.push_back(life.data);
    runs[life.last()].ends.push_back(life.data);
  }
  for (Position p = 0; p < runs.size(); ++p) {
    const TaskRun& run = plan.runs[p];
    const um::Bytes workspace = graph[run.task].algorithms[run.algorithm].workspace;
    runs[p].workspace = block_sizes.workspace_size(workspace);
    runs[p].has_small_workspace = workspace > um::Bytes{} && runs[p].workspace == um::Bytes{};
  }
}

}  // namespace spillway::prefetch
