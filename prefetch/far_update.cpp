#include "prefetch/far_update.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "prefetch/block_sizes.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

template <class Ids>
bool holds(const Ids& ids, DataId id) {
  return std::ranges::find(ids, id) != ids.end();
}

// The use of a block by a task.
struct TaskUse {
  std::uint32_t task;
  bool reads;
  bool writes;
};

std::vector<std::vector<TaskUse>> uses_of(const TaskGraph& graph) {
  std::vector<std::vector<TaskUse>> uses(graph.data.size());
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    for (const DataId id : task.reads) {
      uses[static_cast<std::size_t>(id)].push_back({t, true, holds(task.writes, id)});
    }
    for (const DataId id : task.writes) {
      if (!holds(task.reads, id)) uses[static_cast<std::size_t>(id)].push_back({t, false, true});
    }
    for (const DataId id : task.updates_once) {
      uses[static_cast<std::size_t>(id)].push_back({t, true, true});
    }
  }
  return uses;
}

class Candidates {
 public:
  Candidates(const TaskGraph& graph, um::Bytes page)
      : graph_{graph}, block_sizes_{graph, page}, uses_{uses_of(graph)} {
    for (std::uint32_t t = 0; t < graph.tasks.size(); ++t) found_.push_back(as_far_update(t));
    for (const Task& task : graph.tasks) {
      for (const TaskId before : task.after) found_[static_cast<std::size_t>(before)].reset();
    }
  }

  [[nodiscard]] const std::optional<FarUpdate>& operator[](std::size_t task) const {
    return found_[task];
  }

  // Returns true when only such updates write the parameters, and all other tasks read them before.
  [[nodiscard]] bool are_only_read_before(DataId parameters) const {
    bool is_updated = false;
    for (const TaskUse& use : uses(parameters)) {
      const auto& update = found_[use.task];
      const bool is_update = update && update->parameters == parameters;
      if (!is_update && (use.writes || is_updated)) return false;
      is_updated = is_updated || is_update;
    }
    return true;
  }

 private:
  [[nodiscard]] const std::vector<TaskUse>& uses(DataId id) const {
    return uses_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] bool is_movable_state(DataId id) const {
    return graph_[id].kind == DataKind::kState && block_sizes_.is_movable(id);
  }

  // Returns the task as an update on the far side, if it can be one by itself.
  [[nodiscard]] std::optional<FarUpdate> as_far_update(std::uint32_t t) const {
    const Task& task = graph_.tasks[t];
    if (task.phase != Phase::kUpdate || !task.updates_once.empty() || !task.after.empty()) {
      return std::nullopt;
    }
    FarUpdate update{.name = task.name};
    bool has_parameters = false;
    for (const DataId id : task.writes) {
      if (!is_movable_state(id) || !holds(task.reads, id)) return std::nullopt;
      if (uses(id).size() == 1) {
        update.numbers.push_back(id);
        continue;
      }
      if (has_parameters) return std::nullopt;
      has_parameters = true;
      update.parameters = id;
    }
    bool has_gradient = false;
    for (const DataId id : task.reads) {
      if (holds(task.writes, id)) continue;
      if (has_gradient || !is_gradient(id, t)) return std::nullopt;
      has_gradient = true;
      update.gradient = id;
    }
    if (!has_parameters || !has_gradient) return std::nullopt;
    return update;
  }

  // Returns true for a tensor that is made once and last used by the update.
  [[nodiscard]] bool is_gradient(DataId id, std::uint32_t update) const {
    if (graph_[id].kind != DataKind::kTensor || !block_sizes_.is_movable(id)) return false;
    const std::vector<TaskUse>& all = uses(id);
    if (all.size() < 2 || all.front().reads || all.back().task != update) return false;
    return std::ranges::none_of(all, [&](const TaskUse& use) {
      const bool overwrites_again = use.writes && !use.reads && use.task != all.front().task;
      return overwrites_again || (use.writes && graph_.tasks[use.task].is_recomputable);
    });
  }

  const TaskGraph& graph_;
  BlockSizes block_sizes_;
  std::vector<std::vector<TaskUse>> uses_;  // by block, in order
  std::vector<std::optional<FarUpdate>> found_;
};

// The counts that end when a block has moved for the last time.
struct LastMove {
  std::uint32_t moves = 0;   // of the same direction
  std::uint32_t begins = 0;  // runs before the last move
  std::uint32_t frees = 0;   // runs that read the block while it leaves, or before
};

// Returns the last moves by block.
std::vector<LastMove> last_of(const std::vector<Move>& moves) {
  std::vector<LastMove> last;
  for (std::uint32_t i = 0; i < moves.size(); ++i) {
    const auto data = static_cast<std::size_t>(moves[i].data);
    if (data >= last.size()) last.resize(data + 1);
    last[data] = {.moves = i + 1,
                  .begins = moves[i].after.runs,
                  .frees = std::max(last[data].frees, moves[i].frees_after())};
  }
  return last;
}

class LastMoves {
 public:
  explicit LastMoves(const Plan& plan)
      : offloads_{last_of(plan.offloads)}, prefetches_{last_of(plan.prefetches)} {}

  [[nodiscard]] Progress after(const FarUpdate& update) const {
    const auto of = [](const std::vector<LastMove>& last, DataId id) {
      const auto data = static_cast<std::size_t>(id);
      return data < last.size() ? last[data] : LastMove{};
    };
    const LastMove gradient = of(offloads_, update.gradient);
    const LastMove parameters = of(offloads_, update.parameters);
    const bool is_read_on = parameters.frees > std::max(gradient.begins, parameters.begins);
    return {.runs = is_read_on ? parameters.frees : 0,
            .offloads = std::max(gradient.moves, parameters.moves),
            .prefetches = of(prefetches_, update.parameters).moves};
  }

 private:
  std::vector<LastMove> offloads_;
  std::vector<LastMove> prefetches_;
};

}  // namespace

std::vector<TaskId> far_updatable(const TaskGraph& graph, um::Bytes page) {
  const Candidates candidates{graph, page};
  std::vector<TaskId> updates;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (candidates[t] && candidates.are_only_read_before(candidates[t]->parameters)) {
      updates.push_back(TaskId(t));
    }
  }
  return updates;
}

TaskGraph with_far_updates(TaskGraph graph, std::span<const TaskId> updates) {
  const Candidates candidates{graph, kSmallestPage};  // movable in smaller pages, too
  std::vector<bool> is_far(graph.tasks.size(), false);
  for (const TaskId task : updates) {
    const auto& update = candidates[static_cast<std::size_t>(task)];
    um::expects(update.has_value(), "an update that the far side may run");
    graph.far_updates.push_back(*update);
    is_far[static_cast<std::size_t>(task)] = true;
    DataBlock& gradient = graph.data[static_cast<std::size_t>(update->gradient)];
    gradient.kind = DataKind::kState;
    gradient.is_offloadable = gradient.is_sent = true;
  }
  std::vector<Task> near;
  near.reserve(graph.tasks.size() - updates.size());
  std::vector<TaskId> places;  // by task: how many tasks stay before it
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    places.push_back(TaskId(near.size()));
    if (!is_far[t]) near.push_back(std::move(graph.tasks[t]));
  }
  graph.tasks = std::move(near);
  for (Task& task : graph.tasks) {
    for (TaskId& before : task.after) before = places[static_cast<std::size_t>(before)];
  }
  for (GradientExchange& exchange : graph.exchanges) {
    exchange.ready = places[static_cast<std::size_t>(exchange.ready)];
  }
  return graph;
}

um::Bytes far_traffic(const TaskGraph& graph, const FarUpdate& update) {
  um::Bytes part = graph[update.gradient].size;  // of the parameters; optimizer state is as large
  um::Bytes in_place;
  for (const DataId id : update.numbers) in_place += graph[id].size;
  if (!update.numbers.empty()) {
    part = {};
    for (const DataId id : update.numbers) part = std::max(part, graph[id].size);
  }
  return graph[update.gradient].size + 2 * (in_place + part);
}

std::vector<um::Nanoseconds> far_update_times(const TaskGraph& graph, const LinkProfile& link) {
  std::vector<um::Nanoseconds> times;
  times.reserve(graph.far_updates.size());
  for (const FarUpdate& update : graph.far_updates) {
    times.push_back(far_traffic(graph, update) / link.far_update);
  }
  return times;
}

std::vector<Progress> far_run_conditions(const TaskGraph& graph, const Plan& plan) {
  const LastMoves last{plan};
  std::vector<Progress> conditions;
  conditions.reserve(graph.far_updates.size());
  for (const FarUpdate& update : graph.far_updates) conditions.push_back(last.after(update));
  return conditions;
}

std::vector<FarRun> earliest_far_runs(const TaskGraph& graph, const Plan& plan) {
  const std::vector<Progress> conditions = far_run_conditions(graph, plan);
  std::vector<FarRun> runs;
  runs.reserve(conditions.size());
  for (std::uint32_t u = 0; u < conditions.size(); ++u) {
    runs.push_back({.update = u, .after = conditions[u]});
  }
  std::vector<std::uint32_t> begun{0};  // by number of offloads: runs before all of them
  for (const Move& move : plan.offloads) begun.push_back(std::max(begun.back(), move.after.runs));
  std::ranges::stable_sort(runs, {}, [&](const FarRun& run) {
    return std::tuple{std::max(run.after.runs, begun[run.after.offloads]), run.after.offloads,
                      run.after.prefetches};
  });
  return runs;
}

}  // namespace spillway::prefetch
