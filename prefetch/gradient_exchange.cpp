#include "prefetch/gradient_exchange.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "prefetch/task_graph.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// A gradient, and the last task before its update that touches it.
struct Gradient {
  DataId data;
  TaskId complete;
};

// Returns the gradients in the order in which they are complete.
std::vector<Gradient> find_gradients(const TaskGraph& graph) {
  std::vector<bool> is_made(graph.data.size(), false);          // before updates
  std::vector<bool> is_read(graph.data.size(), false);          // by an update
  std::vector<bool> is_read_forward(graph.data.size(), false);  // which excludes a gradient
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

// Returns by block whether a slice of the sum is enough: after completion only the update touches
// the block, and writes the new parameters into its memory.
std::vector<bool> find_divided(const TaskGraph& graph) {
  std::vector<int> updates(graph.data.size(), 0);
  for (const Task& task : graph.tasks) {
    if (!is_update(task)) continue;
    for_each_operand(task, [&](DataId id) { ++updates[static_cast<std::size_t>(id)]; });
  }
  std::vector<bool> is_divided(graph.data.size(), false);
  for (const DataBlock& block : graph.data) {
    if (!block.lies_in || block.kind != DataKind::kState) continue;
    const auto gradient = static_cast<std::size_t>(*block.lies_in);
    is_divided[gradient] = updates[gradient] == 1;
  }
  return is_divided;
}

std::vector<GradientExchange> fill_buckets(const TaskGraph& graph, const BucketRule& rule) {
  std::vector<GradientExchange> buckets;
  um::Bytes filled;
  um::Bytes full;  // size at which the current bucket is full
  for (const Gradient& gradient : find_gradients(graph)) {
    if (buckets.empty() || filled >= full) {
      full = buckets.empty() ? rule.first : rule.others;
      filled = {};
      buckets.push_back({.name = "bucket " + std::to_string(buckets.size() + 1)});
    }
    buckets.back().blocks.push_back(gradient.data);
    buckets.back().ready = gradient.complete;
    filled += graph[gradient.data].size;
  }
  return buckets;
}

// Returns an all-gather for the parameters in each bucket of gradients, ready when the last slice
// is updated.
std::vector<GradientExchange> gather_parameters(const TaskGraph& graph,
                                                std::span<const GradientExchange> buckets) {
  const std::vector<std::uint32_t> bucket_of = exchange_of_blocks(graph);
  std::vector<GradientExchange> gathers(buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    gathers[i].name = buckets[i].name + " of parameters";
    gathers[i].collective = Collective::kAllGather;
  }
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    for (const DataId id : graph.tasks[t].writes) {
      if (!graph[id].lies_in || graph[id].kind != DataKind::kState) continue;
      const std::uint32_t bucket = bucket_of[static_cast<std::size_t>(*graph[id].lies_in)];
      um::expects(bucket > 0, "new parameters lie in a gradient");
      gathers[bucket - 1].blocks.push_back(id);
      gathers[bucket - 1].ready = TaskId(t);
    }
  }
  std::erase_if(gathers, [](const GradientExchange& each) { return each.blocks.empty(); });
  for (GradientExchange& each : gathers) each.divided = each.blocks;
  return gathers;
}

}  // namespace

std::vector<std::uint32_t> exchange_of_blocks(const TaskGraph& graph) {
  std::vector<std::uint32_t> exchange(graph.data.size(), 0);
  for (std::uint32_t e = 0; e < graph.exchanges.size(); ++e) {
    for (const auto* const ids : {&graph.exchanges[e].blocks, &graph.exchanges[e].waiting}) {
      for (const DataId id : *ids) exchange[static_cast<std::size_t>(id)] = e + 1;
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
  const std::vector<bool> is_divided = find_divided(graph);
  for (GradientExchange& bucket : graph.exchanges) {
    const auto divided =
        std::stable_partition(bucket.blocks.begin(), bucket.blocks.end(),
                              [&](DataId id) { return !is_divided[static_cast<std::size_t>(id)]; });
    bucket.divided.assign(divided, bucket.blocks.end());
    if (!bucket.divided.empty()) bucket.collective = Collective::kReduceScatter;
  }
  const std::vector<GradientExchange> gathers = gather_parameters(graph, graph.exchanges);
  graph.exchanges.insert(graph.exchanges.end(), gathers.begin(), gathers.end());
  const std::vector<std::uint32_t> exchange = exchange_of_blocks(graph);
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (exchange[i] == 0) continue;
    graph.data[i].kind = DataKind::kState;
    graph.data[i].is_offloadable = false;
  }
  for (Task& task : graph.tasks) {
    const bool makes_gradient = std::ranges::any_of(
        task.writes, [&](DataId id) { return exchange[static_cast<std::size_t>(id)] > 0; });
    if (makes_gradient) task.is_recomputable = false;
  }
  return graph;
}

std::size_t count_buckets(const TaskGraph& graph) {
  return static_cast<std::size_t>(
      std::ranges::count_if(graph.exchanges, &GradientExchange::is_of_gradients));
}

void add_exchanges(const TaskGraph& graph, Plan& plan) {
  plan.exchanges.clear();
  if (graph.exchanges.empty()) return;
  const std::vector<std::uint32_t> exchange = exchange_of_blocks(graph);
  std::vector<std::uint32_t> made(graph.exchanges.size(),
                                  0);  // by exchange: when this many runs have ended
  std::uint32_t awaited = 0;
  for (std::uint32_t p = 0; p < plan.runs.size(); ++p) {
    TaskRun& run = plan.runs[p];
    for_each_operand(graph[run.task], [&](DataId id) {
      const std::uint32_t e = exchange[static_cast<std::size_t>(id)];
      if (e == 0) return;
      if (run.task <= graph.exchanges[e - 1].ready) {
        made[e - 1] = p + 1;
      } else {
        awaited = std::max(awaited, e);
      }
    });
    run.after_exchanges = awaited;
  }
  std::uint32_t after = 0;
  for (std::uint32_t e = 0; e < made.size(); ++e) {
    after = std::max(after, made[e]);
    plan.exchanges.push_back({.exchange = e, .after_runs = after});
  }
}

}  // namespace spillway::prefetch
