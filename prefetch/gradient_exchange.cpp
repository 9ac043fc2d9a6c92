#include "prefetch/gradient_exchange.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "prefetch/task_operands.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

bool is_update(const Task& task) { return task.phase == Phase::kUpdate; }

// A gradient, and the last task before its update that touches it.
struct Gradient {
  DataId data;
  TaskId complete;
};

// In the order in which they are complete.
std::vector<Gradient> find_gradients(const TaskGraph& graph) {
  std::vector<bool> is_made(graph.data.size(), false);          // before updates
  std::vector<bool> is_read(graph.data.size(), false);          // by an update
  std::vector<bool> is_read_forward(graph.data.size(), false);  // so that it is no gradient
  std::vector<TaskId> last(graph.data.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (is_update(task)) {
      for (const DataId id : task.reads) is_read[static_cast<std::size_t>(id)] = true;
      continue;
    }
    for_each_operand(task, [&](DataId id) { last[static_cast<std::size_t>(id)] = TaskId(t); });
    for (const DataId id : task.writes) is_made[static_cast<std::size_t>(id)] = true;
    if (task.phase != Phase::kForward) continue;
    for (const DataId id : task.reads) is_read_forward[static_cast<std::size_t>(id)] = true;
  }
  std::vector<Gradient> gradients;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (is_made[i] && is_read[i] && !is_read_forward[i]) {
      gradients.push_back({DataId(i), last[i]});
    }
  }
  std::ranges::stable_sort(gradients, {}, &Gradient::complete);
  return gradients;
}

std::vector<GradientExchange> fill_buckets(const TaskGraph& graph, const BucketRule& rule) {
  std::vector<GradientExchange> buckets;
  um::Bytes filled;
  um::Bytes full;  // of the bucket at hand
  for (const Gradient& gradient : find_gradients(graph)) {
    if (buckets.empty() || filled >= full) {
      full = buckets.empty() ? rule.first : rule.others;
      filled = {};
      buckets.push_back({.name = "bucket " + std::to_string(buckets.size() + 1), .gradients = {}});
    }
    buckets.back().gradients.push_back(gradient.data);
    buckets.back().ready = gradient.complete;
    filled += graph[gradient.data].size;
  }
  return buckets;
}

// For each update, as an index into tasks, the exchange without which it cannot run, itself or what
// it follows, counted from 1.
class Needs {
 public:
  explicit Needs(const TaskGraph& graph)
      : graph_{graph},
        exchange_{exchange_of_blocks(graph)},
        of_writers_(graph.data.size(), 0),
        of_readers_(graph.data.size(), 0) {}

  // To be asked of each update, in order.
  std::uint32_t of(const Task& update) {
    std::uint32_t need = 0;
    for_each_operand(update, [&](DataId id) {
      const auto i = static_cast<std::size_t>(id);
      need = std::max({need, exchange_[i], of_writers_[i]});
    });
    for_each_written(update, [&](DataId id) {
      need = std::max(need, of_readers_[static_cast<std::size_t>(id)]);
    });
    note(update, need);
    return need;
  }

  // Throws where `task`, which follows updates, is to stay before them.
  void expect_independent(const Task& task) const {
    const auto refuse = [&](DataId id) {
      throw um::Error{"task " + task.name + " comes after an update of this step and uses " +
                      graph_[id].name +
                      ", so that updates cannot wait for the gradients of other ranks"};
    };
    for_each_operand(task, [&](DataId id) {
      if (is_written_[static_cast<std::size_t>(id)]) refuse(id);
    });
    for_each_written(task, [&](DataId id) {
      if (is_read_[static_cast<std::size_t>(id)]) refuse(id);
    });
  }

 private:
  void note(const Task& update, std::uint32_t need) {
    for (const DataId id : update.reads) {
      const auto i = static_cast<std::size_t>(id);
      of_readers_[i] = std::max(of_readers_[i], need);
      is_read_[i] = true;
    }
    for_each_written(update, [&](DataId id) {
      const auto i = static_cast<std::size_t>(id);
      of_writers_[i] = std::max(of_writers_[i], need);
      is_written_[i] = true;
    });
  }

  const TaskGraph& graph_;
  std::vector<std::uint32_t> exchange_;    // by block
  std::vector<std::uint32_t> of_writers_;  // by block, of the updates so far
  std::vector<std::uint32_t> of_readers_;
  std::vector<bool> is_written_ = std::vector<bool>(of_writers_.size(), false);  // by an update
  std::vector<bool> is_read_ = std::vector<bool>(of_readers_.size(), false);
};

// By block, the last task so far that touches it, and the last that writes it.
class LastUses {
 public:
  explicit LastUses(const TaskGraph& graph)
      : touched_(graph.data.size(), 0), written_(graph.data.size(), 0) {}

  // How many tasks must have run before `task` may, if it is to keep its order with all that were
  // noted and share a block with it that one of both writes.
  [[nodiscard]] std::size_t before(const Task& task) const {
    std::size_t count = 0;
    for_each_operand(
        task, [&](DataId id) { count = std::max(count, written_[static_cast<std::size_t>(id)]); });
    for_each_written(
        task, [&](DataId id) { count = std::max(count, touched_[static_cast<std::size_t>(id)]); });
    return count;
  }

  void note(const Task& task, TaskId id) {
    const std::size_t count = static_cast<std::size_t>(id) + 1;
    const auto raise = [&](std::vector<std::size_t>& uses, DataId block) {
      std::size_t& last = uses[static_cast<std::size_t>(block)];
      last = std::max(last, count);
    };
    for_each_operand(task, [&](DataId block) { raise(touched_, block); });
    for_each_written(task, [&](DataId block) { raise(written_, block); });
  }

 private:
  std::vector<std::size_t> touched_;  // by block: the number of the task, counted from 1
  std::vector<std::size_t> written_;
};

// Updates that need the same exchange.
struct UpdateGroup {
  std::vector<TaskId> updates;
  std::size_t not_before = 0;  // so many tasks have run, but for updates
};

// By what they need: 0 for no exchange, else the exchange counted from 1.
std::vector<UpdateGroup> group_updates(const TaskGraph& graph) {
  std::vector<UpdateGroup> groups(graph.exchanges.size() + 1);
  Needs needs{graph};
  LastUses uses{graph};  // by other tasks
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (!is_update(task)) {
      needs.expect_independent(task);
      uses.note(task, TaskId(t));
      continue;
    }
    UpdateGroup& group = groups[needs.of(task)];
    group.updates.push_back(TaskId(t));
    group.not_before = std::max(group.not_before, uses.before(task));
  }
  return groups;
}

// True when all tasks that share a block, which one of them writes, are as they were.
bool keeps_dependencies(const TaskGraph& graph, std::span<const TaskId> order) {
  LastUses uses{graph};
  return std::ranges::all_of(order, [&](TaskId task) {
    const bool is_kept = uses.before(graph[task]) <= static_cast<std::size_t>(task);
    uses.note(graph[task], task);
    return is_kept;
  });
}

bool updates_movable_state(const TaskGraph& graph) {
  return std::ranges::any_of(graph.tasks, [&](const Task& task) {
    return is_update(task) &&
           std::ranges::any_of(task.writes, [&](DataId id) { return graph[id].is_offloadable; });
  });
}

}  // namespace

std::vector<std::uint32_t> exchange_of_blocks(const TaskGraph& graph) {
  std::vector<std::uint32_t> exchange(graph.data.size(), 0);
  for (std::uint32_t e = 0; e < graph.exchanges.size(); ++e) {
    for (const DataId id : graph.exchanges[e].gradients) {
      exchange[static_cast<std::size_t>(id)] = e + 1;
    }
  }
  return exchange;
}

TaskGraph with_exchanges(TaskGraph graph, const BucketRule& rule) {
  um::expects(graph.exchanges.empty() && graph.far_updates.empty(), "a step of one rank");
  graph.exchanges = fill_buckets(graph, rule);
  if (graph.exchanges.empty()) {
    throw um::Error{
        "no update of this step reads a gradient, so that there is nothing to exchange between "
        "ranks; leave out --ranks"};
  }
  const std::vector<std::uint32_t> exchange = exchange_of_blocks(graph);
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (exchange[i] > 0) graph.data[i].kind = DataKind::kState;
  }
  for (Task& task : graph.tasks) {
    const bool makes_gradient = std::ranges::any_of(
        task.writes, [&](DataId id) { return exchange[static_cast<std::size_t>(id)] > 0; });
    if (makes_gradient) task.is_recomputable = false;
  }
  return graph;
}

std::vector<TaskId> update_order(const TaskGraph& graph) {
  const std::vector<UpdateGroup> groups = group_updates(graph);
  std::vector<TaskId> order;
  std::size_t next = 0;  // of `groups`
  const auto add_next = [&] {
    const std::vector<TaskId>& updates = groups[next].updates;
    order.insert(order.end(), updates.begin(), updates.end());
    ++next;
  };
  const bool is_early = updates_movable_state(graph);
  std::size_t ready = 0;  // exchanges
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (!is_update(graph.tasks[t])) order.push_back(TaskId(t));
    while (ready < graph.exchanges.size() && graph.exchanges[ready].ready == TaskId(t)) ++ready;
    while (is_early && next < ready && groups[next].not_before <= t + 1) add_next();
  }
  while (next < groups.size()) add_next();
  return order;
}

TaskGraph in_order(TaskGraph graph, std::span<const TaskId> order) {
  um::expects(order.size() == graph.tasks.size(), "an order of all tasks");
  um::expects(keeps_dependencies(graph, order), "an order in which tasks use what they did");
  std::vector<TaskId> place(order.size());
  std::vector<Task> tasks;
  tasks.reserve(order.size());
  for (const TaskId task : order) {
    place[static_cast<std::size_t>(task)] = TaskId(tasks.size());
    tasks.push_back(std::move(graph.tasks[static_cast<std::size_t>(task)]));
  }
  graph.tasks = std::move(tasks);
  for (GradientExchange& exchange : graph.exchanges) {
    exchange.ready = place[static_cast<std::size_t>(exchange.ready)];
  }
  return graph;
}

void add_exchanges(const TaskGraph& graph, Plan& plan) {
  plan.exchanges.clear();
  if (graph.exchanges.empty()) return;
  const std::vector<std::uint32_t> exchange = exchange_of_blocks(graph);
  std::uint32_t awaited = 0;
  for (std::uint32_t p = 0; p < plan.runs.size(); ++p) {
    TaskRun& run = plan.runs[p];
    for_each_operand(graph[run.task], [&](DataId id) {
      const std::uint32_t e = exchange[static_cast<std::size_t>(id)];
      if (e > awaited && run.task > graph.exchanges[e - 1].ready) awaited = e;
    });
    run.after_exchanges = awaited;
    for (auto e = static_cast<std::uint32_t>(plan.exchanges.size());
         e < graph.exchanges.size() && graph.exchanges[e].ready == run.task; ++e) {
      plan.exchanges.push_back({.exchange = e, .after_runs = p + 1});
    }
  }
}

}  // namespace spillway::prefetch
