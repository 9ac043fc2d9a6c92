#include "prefetch/update_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "prefetch/task_graph.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// Finds for each update the exchange that it needs, directly or through other tasks, counted from
// 1.
class Needs {
 public:
  explicit Needs(const TaskGraph& graph)
      : graph_{graph},
        exchange_{exchange_of_blocks(graph)},
        of_writers_(graph.data.size(), 0),
        of_readers_(graph.data.size(), 0),
        of_updates_(graph.tasks.size(), 0) {}

  // Requires: called for each update, in order.
  std::uint32_t of(TaskId task) {
    const Task& update = graph_[task];
    std::uint32_t need = 0;
    for (const TaskId before : update.after) {
      need = std::max(need, of_updates_[static_cast<std::size_t>(before)]);
    }
    for (const DataId id : update.reads) {
      need = std::max(need, exchange_[static_cast<std::size_t>(id)]);
    }
    for_each_operand(update, [&](DataId id) {
      need = std::max(need, of_writers_[static_cast<std::size_t>(id)]);
    });
    for_each_written(update, [&](DataId id) {
      need = std::max(need, of_readers_[static_cast<std::size_t>(id)]);
    });
    note(update, need);
    return of_updates_[static_cast<std::size_t>(task)] = need;
  }

  // Throws if `task`, which follows updates, depends on them and so cannot move before them.
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
    for (const TaskId before : task.after) {
      if (!is_update(graph_[before])) continue;
      throw um::Error{"task " + task.name + " must follow " + graph_[before].name +
                      ", an update of this step, so that updates cannot wait for the gradients of "
                      "other ranks; leave out --ranks"};
    }
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
  std::vector<std::uint32_t> of_updates_;  // by task; 0 for other tasks
  std::vector<bool> is_written_ = std::vector<bool>(of_writers_.size(), false);  // by an update
  std::vector<bool> is_read_ = std::vector<bool>(of_readers_.size(), false);
};

// The last task that touches each block, and the last that writes it, among noted tasks.
class LastUses {
 public:
  explicit LastUses(const TaskGraph& graph)
      : touched_(graph.data.size(), 0), written_(graph.data.size(), 0) {}

  // Returns how many tasks must have run before `task` to keep its dependencies on noted tasks. Two
  // tasks depend on each other if one writes a block that both use.
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
  std::size_t not_before = 0;  // how many other tasks must have run
};

// By exchange that they need, counted from 1; 0 for none.
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
    UpdateGroup& group = groups[needs.of(TaskId(t))];
    group.updates.push_back(TaskId(t));
    group.not_before = std::max(group.not_before, uses.before(task));
    for (const TaskId before : task.after) {
      const std::size_t count = static_cast<std::size_t>(before) + 1;
      if (!is_update(graph[before])) group.not_before = std::max(group.not_before, count);
    }
  }
  return groups;
}

// Returns true when `order` keeps the order of all tasks that depend on each other.
bool keeps_dependencies(const TaskGraph& graph, std::span<const TaskId> order) {
  LastUses uses{graph};
  std::vector<bool> has_run(graph.tasks.size(), false);
  return std::ranges::all_of(order, [&](TaskId task) {
    const bool is_kept = uses.before(graph[task]) <= static_cast<std::size_t>(task);
    uses.note(graph[task], task);
    has_run[static_cast<std::size_t>(task)] = true;
    return is_kept && std::ranges::all_of(graph[task].after, [&](TaskId before) {
             return has_run[static_cast<std::size_t>(before)];
           });
  });
}

// Builds the order of update_order() task by task.
class OrderBuilder {
 public:
  explicit OrderBuilder(const TaskGraph& graph) : graph_{graph}, groups_{group_updates(graph)} {
    for (std::uint32_t e = 0; e < graph.exchanges.size(); ++e) {
      if (graph.exchanges[e].is_of_gradients()) {
        sums_.push_back(e + 1);
      } else {
        gathers_.push_back({.exchange = e + 1});
      }
    }
    find_makers();
    const auto updates_movable_state = [&](const Task& task) {
      const auto is_movable = [&](DataId id) { return graph[id].is_offloadable; };
      return is_update(task) && std::ranges::any_of(task.writes, is_movable);
    };
    is_early_ = !gathers_.empty() || std::ranges::any_of(graph.tasks, updates_movable_state);
  }

  std::vector<TaskId> build() {
    std::size_t ready = 0;  // of sums_, in order
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      if (!is_update(graph_.tasks[t])) order_.push_back(TaskId(t));
      while (ready + 1 < sums_.size() &&
             graph_.exchanges[sums_[ready + 1] - 1].ready == TaskId(t)) {
        ++ready;
      }
      if (!is_early_) continue;
      while (next_sum_ < ready && groups_[sums_[next_sum_]].not_before <= t + 1) add_sum();
      add_gathers(t + 1, 1);
    }
    const std::size_t all = graph_.tasks.size();
    while (next_sum_ < sums_.size()) {
      add_sum();
      add_gathers(all, 1);
    }
    add_gathers(all, 0);
    return std::move(order_);
  }

 private:
  // Updates that need the result of an all-gather.
  struct Gather {
    std::uint32_t exchange = 0;  // counted from 1
    std::size_t maker = 0;       // place in sums_ of the last group that makes some of it
  };

  void find_makers() {
    const std::vector<std::uint32_t> exchange = exchange_of_blocks(graph_);
    for (std::size_t place = 0; place < sums_.size(); ++place) {
      for (const TaskId update : groups_[sums_[place]].updates) {
        for (const DataId id : graph_[update].writes) {
          const std::uint32_t e = exchange[static_cast<std::size_t>(id)];
          const auto made = std::ranges::find(gathers_, e, &Gather::exchange);
          if (made != gathers_.end()) made->maker = std::max(made->maker, place);
        }
      }
    }
  }

  void add_sum() { add(groups_[sums_[next_sum_++]]); }

  // Adds gather groups that may run after `tasks` tasks, if `later` groups follow the group that
  // makes the gathered parameters.
  void add_gathers(std::size_t tasks, std::size_t later) {
    while (next_gather_ < gathers_.size()) {
      const auto& [exchange, maker] = gathers_[next_gather_];
      if (next_sum_ <= maker + later || groups_[exchange].not_before > tasks) return;
      add(groups_[exchange]);
      ++next_gather_;
    }
  }

  void add(const UpdateGroup& group) {
    order_.insert(order_.end(), group.updates.begin(), group.updates.end());
  }

  const TaskGraph& graph_;
  std::vector<UpdateGroup> groups_;
  std::vector<std::uint32_t> sums_{0};  // groups: 0 for no exchange, then sums of gradients
  std::vector<Gather> gathers_;
  bool is_early_ = false;
  std::size_t next_sum_ = 0;
  std::size_t next_gather_ = 0;
  std::vector<TaskId> order_;
};

}  // namespace

std::vector<TaskId> update_order(const TaskGraph& graph) { return OrderBuilder{graph}.build(); }

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
  for (Task& task : graph.tasks) {
    for (TaskId& before : task.after) before = place[static_cast<std::size_t>(before)];
  }
  for (GradientExchange& exchange : graph.exchanges) {
    exchange.ready = place[static_cast<std::size_t>(exchange.ready)];
  }
  // An all-gather becomes ready with the last task, in this order, that writes one of its blocks.
  const std::vector<std::uint32_t> exchange_of = exchange_of_blocks(graph);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    for (const DataId id : graph.tasks[t].writes) {
      const std::uint32_t e = exchange_of[static_cast<std::size_t>(id)];
      if (graph[id].lies_in && e > 0) graph.exchanges[e - 1].ready = TaskId(t);
    }
  }
  std::ranges::stable_sort(graph.exchanges, {}, &GradientExchange::ready);
  return graph;
}

}  // namespace spillway::prefetch
