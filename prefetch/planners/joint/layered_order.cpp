#include "prefetch/planners/joint/layered_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/precedence.h"

namespace spillway::prefetch {
namespace {

using Number = std::uint32_t;
constexpr Number kUnknown = ~0U;

// Sets of tasks that are connected by tensors.
class ConnectedTasks {
 public:
  explicit ConnectedTasks(std::size_t tasks) : parent_(tasks) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }

  // Returns the first task of the set.
  [[nodiscard]] Number first(Number task) {
    while (parent_[task] != task) task = parent_[task] = parent_[parent_[task]];
    return task;
  }
  void connect(Number a, Number b) {
    const Number of_a = first(a);
    const Number of_b = first(b);
    parent_[std::max(of_a, of_b)] = std::min(of_a, of_b);
  }

 private:
  std::vector<Number> parent_;
};

// Returns by task the number of its micro-batch, and how many there are, as the tasks say; those
// that do not are of the micro-batch of the task before.
std::pair<std::vector<Number>, std::size_t> said_micro_batches(const TaskGraph& graph) {
  std::vector<Number> micro_batch;
  Number count = 1;
  for (const Task& task : graph.tasks) {
    micro_batch.push_back(task.micro_batch.value_or(micro_batch.empty() ? 0 : micro_batch.back()));
    count = std::max(count, micro_batch.back() + 1);
  }
  return {std::move(micro_batch), count};
}

// Returns the same by Task::micro_batch, or by data if no task says it.
std::pair<std::vector<Number>, std::size_t> find_micro_batches(const TaskGraph& graph) {
  const auto is_said = [](const Task& task) { return task.micro_batch.has_value(); };
  if (std::ranges::any_of(graph.tasks, is_said)) return said_micro_batches(graph);
  const std::size_t tasks = graph.tasks.size();
  ConnectedTasks connected{tasks};
  std::vector<Number> last_user(graph.data.size(), kUnknown);
  const auto is_forward = [&](Number t) { return graph.tasks[t].phase == Phase::kForward; };
  for (Number t = 0; t < tasks; ++t) {
    if (!is_forward(t)) continue;
    for_each_operand(graph.tasks[t], [&](DataId id) {
      Number& last = last_user[static_cast<std::size_t>(id)];
      if (graph[id].kind != DataKind::kTensor) return;
      if (last != kUnknown) connected.connect(last, t);
      last = t;
    });
  }
  std::vector<Number> micro_batch(tasks, kUnknown);
  Number count = 0;
  for (Number t = 0; t < tasks; ++t) {
    if (!is_forward(t)) continue;
    const Number first = connected.first(t);
    micro_batch[t] = first == t ? count++ : micro_batch[first];
  }
  std::vector<Number> of_block(graph.data.size(), 0);
  for (Number t = 0; t < tasks; ++t) {
    if (!is_forward(t)) {
      Number last = kUnknown;
      for (const DataId id : graph.tasks[t].reads) {
        const Number number = of_block[static_cast<std::size_t>(id)];
        if (graph[id].kind == DataKind::kTensor)
          last = last == kUnknown ? number : std::max(last, number);
      }
      const Number before = t > 0 ? micro_batch[t - 1] : 0;
      micro_batch[t] = last == kUnknown ? before : last;
    }
    for_each_written(graph.tasks[t],
                     [&](DataId id) { of_block[static_cast<std::size_t>(id)] = micro_batch[t]; });
  }
  return {std::move(micro_batch), count};
}

}  // namespace

LayeredOrder::LayeredOrder(const Problem& problem)
    : problem_{problem}, reads_(problem.graph.tasks.size(), 0) {
  const TaskGraph& graph = problem.graph;
  const BlockSizes block_sizes{graph, problem.page};
  auto [micro_batch, count] = find_micro_batches(graph);
  micro_batch_ = std::move(micro_batch);
  if (count < 2) return;
  std::vector<std::vector<std::vector<DataId>>> state(count);  // by micro-batch and read
  for (std::size_t t = 0; t < reads_.size(); ++t) {
    auto& own = state[micro_batch_[t]];
    std::vector<DataId> blocks;
    for (const DataId id : graph.tasks[t].reads) {
      if (graph[id].kind == DataKind::kState && block_sizes.is_movable(id)) blocks.push_back(id);
    }
    if (!blocks.empty() && !is_update(graph.tasks[t])) own.push_back(std::move(blocks));
    reads_[t] = static_cast<Number>(own.size());
  }
  const auto is_first = [&](const auto& other) { return other == state.front(); };
  if (state.front().empty() || !std::ranges::all_of(state, is_first)) return;
  micro_batches_ = count;
  state_ = std::move(state.front());
}

std::vector<Number> LayeredOrder::cut(um::Bytes weights) const {
  const BlockSizes block_sizes{problem_.graph, problem_.page};
  std::vector<Number> layer{0};  // by number of reads
  std::vector<DataId> held;
  um::Bytes size;
  for (const std::vector<DataId>& blocks : state_) {
    const auto is_held = [&](DataId id) { return std::ranges::count(held, id) > 0; };
    um::Bytes more;
    for (const DataId id : blocks) more += is_held(id) ? um::Bytes{} : block_sizes.size(id);
    const bool begins = more > um::Bytes{} && size + more > weights && !held.empty();
    layer.push_back(layer.back() + (begins ? 1 : 0));
    if (begins) held.clear();
    if (begins) size = {};
    for (const DataId id : blocks) {
      if (is_held(id)) continue;
      held.push_back(id);
      size += block_sizes.size(id);
    }
  }
  return layer;
}

std::vector<TaskRun> LayeredOrder::order(std::span<const TaskRun> runs, std::size_t group,
                                         um::Bytes weights) const {
  const auto count = static_cast<Number>(runs.size());
  const std::vector<Number> layer = cut(weights);
  const auto loads = static_cast<Number>(count_loads(problem_.graph));
  std::vector<Number> wanted(count);
  std::iota(wanted.begin(), wanted.end(), 0U);
  std::ranges::stable_sort(wanted.begin() + loads, wanted.end(), {}, [&](Number t) {
    return std::tuple{micro_batch_[t] / group, layer[reads_[t]], micro_batch_[t]};
  });
  std::vector<Number> rank(count);
  for (Number i = 0; i < count; ++i) rank[wanted[i]] = i;
  const Precedence precedence{problem_.graph, problem_.page};
  std::vector<Number> missing(count, 0);  // by task: those that it waits for
  std::vector<std::vector<Number>> followers(count);
  for (Number t = 0; t < count; ++t) {
    for (const auto tasks : {precedence.sources(TaskId{t}), precedence.hazards(TaskId{t})}) {
      missing[t] += static_cast<Number>(tasks.size());
      for (const TaskId before : tasks) followers[static_cast<std::size_t>(before)].push_back(t);
    }
  }
  std::priority_queue<Number, std::vector<Number>, std::greater<>> ready;  // ranks
  for (Number t = 0; t < count; ++t) {
    if (missing[t] == 0) ready.push(rank[t]);
  }
  std::vector<TaskRun> ordered;
  while (!ready.empty()) {
    const Number task = wanted[ready.top()];
    ready.pop();
    ordered.push_back(runs[task]);
    for (const Number follower : followers[task]) {
      if (--missing[follower] == 0) ready.push(rank[follower]);
    }
  }
  return ordered;
}

}  // namespace spillway::prefetch
