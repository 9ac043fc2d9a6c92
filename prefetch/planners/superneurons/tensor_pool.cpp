#include "prefetch/planners/superneurons/tensor_pool.h"

#include <algorithm>
#include <iterator>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

std::size_t index_of(DataId id) { return static_cast<std::size_t>(id); }

bool touches(const std::vector<DataId>& ids, const std::vector<bool>& marked) {
  return std::ranges::any_of(ids, [&](DataId id) -> bool { return marked[index_of(id)]; });
}

// Returns by task whether it is a backward task of a convolution. Such a task reads the weights, or
// makes the gradient that their update reads.
std::vector<bool> find_convolutions_backward(const TaskGraph& graph) {
  std::vector<bool> is_weights(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (task.kind != TaskKind::kConvolution) continue;
    for (const DataId id : task.reads)
      is_weights[index_of(id)] = graph[id].kind == DataKind::kState;
  }
  std::vector<bool> is_gradient(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (task.phase != Phase::kUpdate || !touches(task.reads, is_weights)) continue;
    for (const DataId id : task.reads)
      is_gradient[index_of(id)] = graph[id].kind == DataKind::kTensor;
  }
  std::vector<bool> result;
  for (const Task& task : graph.tasks) {
    result.push_back(task.phase == Phase::kBackward &&
                     (touches(task.reads, is_weights) || touches(task.writes, is_gradient)));
  }
  return result;
}

std::vector<bool> find_outputs_of_convolutions(const TaskGraph& graph) {
  std::vector<bool> result(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (task.kind != TaskKind::kConvolution) continue;
    for (const DataId id : task.writes) result[index_of(id)] = true;
  }
  return result;
}

}  // namespace

TensorPool::TensorPool(const TaskGraph& graph, const BlockSizes& block_sizes,
                       const std::vector<TaskRun>& runs, bool may_offload)
    : block_sizes_{block_sizes} {
  const std::vector<bool> is_output = find_outputs_of_convolutions(graph);
  const std::vector<bool> is_backward = find_convolutions_backward(graph);
  const std::vector<Life> lives = find_lives(graph, runs);
  demand_ = prefetch::demand(graph, block_sizes, runs, lives);
  std::ranges::copy_if(lives, std::back_inserter(tensors_), [&](const Life& life) {
    return may_offload && is_output[index_of(life.data)] && block_sizes.is_movable(life.data);
  });
  for (Position p = 0; p < runs.size(); ++p) {
    const Task& task = graph[runs[p].task];
    is_forward_.push_back(task.phase == Phase::kForward && !runs[p].is_recomputation);
    if (is_forward_.back() && task.kind == TaskKind::kConvolution) forward_.push_back(p);
    if (is_backward[static_cast<std::size_t>(runs[p].task)]) backward_.push_back(p);
  }
}

TensorPool::Floor TensorPool::floor() const {
  std::vector<Swap> all;
  for (const IdleInterval& idle : find_idle_intervals(block_sizes_, tensors_)) {
    all.push_back({{idle, {}, block_sizes_.size(idle.data), idle.last + 1}, idle.next});
  }
  const std::vector<Bytes> near = near_during(all, demand_);
  const auto max = std::ranges::max_element(near);
  if (max == near.end()) return {};
  return {.position = static_cast<Position>(max - near.begin()), .size = *max};
}

std::vector<Swap> TensorPool::swaps(Bytes pool, TensorPolicy policy) const {
  auto far_intervals = cover(block_sizes_, demand_, tensors_, pool, {.whole_blocks = true});
  um::expects(far_intervals.has_value(), "a pool of at least the floor");
  if (policy == TensorPolicy::kEager) leave_eagerly(*far_intervals);
  std::ranges::stable_sort(*far_intervals, {}, &FarInterval::next);
  std::vector<Swap> swaps;
  for (const FarInterval& far_interval : *far_intervals) {
    swaps.push_back({far_interval, far_interval.next});
  }
  std::vector<Bytes> near = near_during(swaps, demand_);
  for (Swap& swap : swaps) {
    const Position wanted = fetch_position(swap);
    while (swap.back > wanted && near[swap.back - 1] + swap.size <= pool) {
      near[--swap.back] += swap.size;
    }
  }
  return swaps;
}

// Makes every tensor leave before the next convolution after its last forward use, needed or not.
void TensorPool::leave_eagerly(std::vector<FarInterval>& far_intervals) const {
  for (const IdleInterval& idle : find_idle_intervals(block_sizes_, tensors_)) {
    if (!is_forward_[idle.last] || is_forward_[idle.next]) continue;
    const auto convolution = std::ranges::upper_bound(forward_, idle.last);
    if (convolution == forward_.end() || *convolution >= idle.next) continue;
    const auto known = std::ranges::find_if(far_intervals, [&](const FarInterval& each) {
      return each.data == idle.data && each.last == idle.last;
    });
    if (known != far_intervals.end()) {
      known->needed = std::min(known->needed, *convolution);
    } else {
      far_intervals.push_back({idle, {}, block_sizes_.size(idle.data), *convolution});
    }
  }
}

Position TensorPool::fetch_position(const FarInterval& far_interval) const {
  const auto after = std::ranges::lower_bound(backward_, far_interval.next);
  if (after == backward_.begin() || *std::prev(after) < far_interval.needed)
    return far_interval.next;
  return *std::prev(after);
}

}  // namespace spillway::prefetch
