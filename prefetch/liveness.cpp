#include "prefetch/liveness.h"

#include <algorithm>
#include <utility>

namespace spillway::prefetch {

using um::Bytes;

std::vector<DataId> operands(const Task& task) {
  std::vector<DataId> ids = task.reads;
  ids.insert(ids.end(), task.writes.begin(), task.writes.end());
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

LifeFinder::LifeFinder(const TaskGraph& graph) : current_(graph.data.size()) {
  first_use_.reserve(graph.tasks.size() + 1);
  for (const Task& task : graph.tasks) {
    first_use_.push_back(static_cast<std::uint32_t>(uses_.size()));
    for (const DataId id : operands(task)) {
      if (!graph[id].may_leave()) continue;
      uses_.push_back({.data = id,
                       .reads = std::ranges::count(task.reads, id) > 0,
                       .writes = std::ranges::count(task.writes, id) > 0,
                       .is_state = graph[id].kind == DataKind::kState,
                       .is_sent = graph[id].is_sent});
    }
  }
  first_use_.push_back(static_cast<std::uint32_t>(uses_.size()));
}

std::span<const Life> LifeFinder::find(std::span<const TaskRun> runs) {
  constexpr std::uint32_t kNone = ~0U;
  constexpr std::size_t kUsualAccesses = 4;
  std::ranges::fill(current_, kNone);
  std::uint32_t count = 0;
  for (Position position = 0; position < runs.size(); ++position) {
    const auto task = static_cast<std::size_t>(runs[position].task);
    for (std::uint32_t u = first_use_[task]; u < first_use_[task + 1]; ++u) {
      const Use& use = uses_[u];
      std::uint32_t& life = current_[static_cast<std::size_t>(use.data)];
      if (life == kNone || (!use.reads && !use.is_state)) {
        life = count++;
        if (life == lives_.size()) {
          lives_.emplace_back().accesses.reserve(kUsualAccesses);
        }
        lives_[life].data = use.data;
        lives_[life].accesses.clear();
        lives_[life].whole_step = use.is_state ? static_cast<Position>(runs.size()) : Position{0};
        lives_[life].is_sent = use.is_sent;
      }
      lives_[life].accesses.push_back(
          {.position = position, .reads = use.reads, .writes = use.writes});
    }
  }
  return {lives_.data(), count};
}

std::vector<Life> find_lives(const TaskGraph& graph, std::span<const TaskRun> runs) {
  LifeFinder finder{graph};
  (void)finder.find(runs);
  return std::move(finder.lives_);  // all elements are lives after a first call
}

std::vector<Bytes> demand(const TaskGraph& graph, const BlockSizes& block_sizes,
                          std::span<const TaskRun> runs, std::span<const Life> lives) {
  std::vector<Bytes> begins(runs.size() + 1);
  std::vector<Bytes> ends(runs.size() + 1);
  for (const Life& life : lives) {
    begins[life.begin()] += block_sizes.size(life.data);
    ends[life.last() + 1] += block_sizes.size(life.data);
  }
  std::vector<Bytes> result;
  result.reserve(runs.size());
  Bytes live;
  for (Position position = 0; position < runs.size(); ++position) {
    live = live + begins[position] - ends[position];
    const TaskRun& run = runs[position];
    const Bytes workspace = graph[run.task].algorithms[run.algorithm].workspace;
    result.push_back(live + block_sizes.workspace_size(workspace));
  }
  return result;
}

Bytes demand_at_end(const BlockSizes& block_sizes, std::span<const Life> lives) {
  Bytes size;
  for (const Life& life : lives) {
    if (life.outlives_step()) size += block_sizes.size(life.data);
  }
  return size;
}

std::vector<Bytes> working_sets(const TaskGraph& graph, const BlockSizes& block_sizes,
                                std::span<const TaskRun> runs) {
  std::vector<Bytes> result;
  result.reserve(runs.size());
  for (const TaskRun& run : runs) {
    const Task& task = graph[run.task];
    Bytes size = block_sizes.workspace_size(task.algorithms[run.algorithm].workspace);
    for (const DataId id : operands(task)) size += block_sizes.size(id);
    result.push_back(size);
  }
  return result;
}

namespace {

IdleInterval begin_of(const Life& life) {
  return {.data = life.data,
          .begin = life.begin(),
          .written = life.begin(),
          .last = life.begin(),
          .is_written = !life.begins_before_step()};
}

void pass(const BlockAccess& access, IdleInterval& interval) {
  interval.last = access.position;
  if (!access.writes) return;
  interval.written = access.position;
  interval.is_written = true;
}

}  // namespace

std::vector<IdleInterval> find_idle_intervals(const BlockSizes& block_sizes,
                                              std::span<const Life> lives) {
  std::vector<IdleInterval> intervals;
  for (const Life& life : lives) {
    if (!block_sizes.is_movable(life.data)) continue;
    IdleInterval interval = begin_of(life);
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      pass(life.accesses[a], interval);
      interval.next = life.accesses[a + 1].position;
      if (interval.next > interval.last + 1) intervals.push_back(interval);
    }
  }
  return intervals;
}

IdleInterval idle_interval_at(const Life& life, Position turn) {
  IdleInterval interval = begin_of(life);
  for (const BlockAccess& access : life.accesses) {
    interval.next = access.position;
    if (access.position >= turn) break;
    pass(access, interval);
  }
  return interval;
}

}  // namespace spillway::prefetch
