#include "prefetch/liveness.h"

#include <algorithm>

namespace spillway::prefetch {

using um::Bytes;

namespace {

// operands() without a new vector each time: planners ask for the lives of thousands of sequences.
void collect_operands(const Task& task, std::vector<DataId>& ids) {
  ids.assign(task.reads.begin(), task.reads.end());
  ids.insert(ids.end(), task.writes.begin(), task.writes.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

std::vector<DataId> operands(const Task& task) {
  std::vector<DataId> ids;
  collect_operands(task, ids);
  return ids;
}

std::vector<Life> find_lives(const TaskGraph& graph, std::span<const TaskRun> runs) {
  constexpr std::size_t kNone = ~std::size_t{0};
  constexpr std::size_t kUsualAccesses = 4;
  std::vector<Life> lives;
  std::vector<std::size_t> current(graph.data.size(), kNone);  // index into lives
  std::vector<DataId> ids;
  for (Position position = 0; position < runs.size(); ++position) {
    const Task& task = graph[runs[position].task];
    collect_operands(task, ids);
    for (const DataId id : ids) {
      if (!graph[id].may_leave()) continue;
      const bool is_state = graph[id].kind == DataKind::kState;
      const bool reads = std::ranges::count(task.reads, id) > 0;
      const bool writes = std::ranges::count(task.writes, id) > 0;
      std::size_t& life = current[static_cast<std::size_t>(id)];
      if (life == kNone || (!reads && !is_state)) {
        life = lives.size();
        const auto whole = is_state ? static_cast<Position>(runs.size()) : Position{0};
        lives.push_back({.data = id, .accesses = {}, .whole_step = whole});
        lives.back().accesses.reserve(kUsualAccesses);
      }
      lives[life].accesses.push_back({.position = position, .reads = reads, .writes = writes});
    }
  }
  return lives;
}

std::vector<Bytes> demand(const TaskGraph& graph, const Occupancy& occupancy,
                          std::span<const TaskRun> runs, std::span<const Life> lives) {
  std::vector<Bytes> begins(runs.size() + 1);
  std::vector<Bytes> ends(runs.size() + 1);
  for (const Life& life : lives) {
    begins[life.begin()] += occupancy.size(life.data);
    ends[life.last() + 1] += occupancy.size(life.data);
  }
  std::vector<Bytes> result;
  result.reserve(runs.size());
  Bytes live;
  for (Position position = 0; position < runs.size(); ++position) {
    live = live + begins[position] - ends[position];
    const TaskRun& run = runs[position];
    const Bytes workspace = graph[run.task].algorithms[run.algorithm].workspace;
    result.push_back(live + occupancy.workspace_size(workspace));
  }
  return result;
}

std::vector<Bytes> working_sets(const TaskGraph& graph, const Occupancy& occupancy,
                                std::span<const TaskRun> runs) {
  std::vector<Bytes> result;
  result.reserve(runs.size());
  for (const TaskRun& run : runs) {
    const Task& task = graph[run.task];
    Bytes size = occupancy.workspace_size(task.algorithms[run.algorithm].workspace);
    for (const DataId id : operands(task)) size += occupancy.size(id);
    result.push_back(size);
  }
  return result;
}

}  // namespace spillway::prefetch
