#include "prefetch/gradient_exchange.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

bool is_update(const Task& task) { return task.phase == Phase::kUpdate; }

template <class Use>
void for_each_operand(const Task& task, const Use& use) {
  for (const auto* const ids : {&task.reads, &task.writes, &task.updates_once}) {
    for (const DataId id : *ids) use(id);
  }
}

// A gradient, and the last task before its update that touches it.
struct Gradient {
  DataId data;
  TaskId complete;
};

// In the order in which they are complete.
std::vector<Gradient> find_gradients(const TaskGraph& graph) {
  std::vector<bool> is_made(graph.data.size(), false);  // going backward
  std::vector<bool> is_read(graph.data.size(), false);  // by an update
  std::vector<TaskId> last(graph.data.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (is_update(task)) {
      for (const DataId id : task.reads) is_read[static_cast<std::size_t>(id)] = true;
      continue;
    }
    for_each_operand(task, [&](DataId id) { last[static_cast<std::size_t>(id)] = TaskId(t); });
    if (task.phase != Phase::kBackward) continue;
    for (const DataId id : task.writes) is_made[static_cast<std::size_t>(id)] = true;
  }
  std::vector<Gradient> gradients;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const bool is_tensor = graph.data[i].kind == DataKind::kTensor;
    if (is_tensor && is_made[i] && is_read[i]) gradients.push_back({DataId(i), last[i]});
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
    for (const auto* const written : {&update.writes, &update.updates_once}) {
      for (const DataId id : *written) {
        need = std::max(need, of_readers_[static_cast<std::size_t>(id)]);
      }
    }
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
    for (const auto* const written : {&task.writes, &task.updates_once}) {
      for (const DataId id : *written) {
        if (is_read_[static_cast<std::size_t>(id)]) refuse(id);
      }
    }
  }

 private:
  void note(const Task& update, std::uint32_t need) {
    for (const DataId id : update.reads) {
      const auto i = static_cast<std::size_t>(id);
      of_readers_[i] = std::max(of_readers_[i], need);
      is_read_[i] = true;
    }
    for (const auto* const written : {&update.writes, &update.updates_once}) {
      for (const DataId id : *written) {
        const auto i = static_cast<std::size_t>(id);
        of_writers_[i] = std::max(of_writers_[i], need);
        is_written_[i] = true;
      }
    }
  }

  const TaskGraph& graph_;
  std::vector<std::uint32_t> exchange_;    // by block
  std::vector<std::uint32_t> of_writers_;  // by block, of the updates so far
  std::vector<std::uint32_t> of_readers_;
  std::vector<bool> is_written_ = std::vector<bool>(of_writers_.size(), false);  // by an update
  std::vector<bool> is_read_ = std::vector<bool>(of_readers_.size(), false);
};

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
  std::vector<std::vector<TaskId>> updates(graph.exchanges.size() + 1);  // by what they need
  Needs needs{graph};
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (is_update(graph.tasks[t])) {
      updates[needs.of(graph.tasks[t])].push_back(TaskId(t));
    } else {
      needs.expect_independent(graph.tasks[t]);
    }
  }
  std::vector<TaskId> order;
  std::size_t next = 0;  // of `updates`
  const auto add_up_to = [&](std::size_t end) {
    for (; next < end; ++next)
      order.insert(order.end(), updates[next].begin(), updates[next].end());
  };
  const bool is_early = updates_movable_state(graph);
  std::size_t ready = 0;  // exchanges
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (!is_update(graph.tasks[t])) order.push_back(TaskId(t));
    while (ready < graph.exchanges.size() && graph.exchanges[ready].ready == TaskId(t)) ++ready;
    if (is_early) add_up_to(ready);
  }
  add_up_to(updates.size());
  return order;
}

TaskGraph in_order(TaskGraph graph, std::span<const TaskId> order) {
  um::expects(order.size() == graph.tasks.size(), "an order of all tasks");
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
