#include "prefetch/tensor_pool.h"

#include <algorithm>
#include <iterator>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

std::size_t index(DataId id) { return static_cast<std::size_t>(id); }

bool touches(const std::vector<DataId>& ids, const std::vector<bool>& marked) {
  return std::ranges::any_of(ids, [&](DataId id) -> bool { return marked[index(id)]; });
}

// By task: whether it is a backward task of a convolution. It reads the weights, or makes the
// gradient that their update reads.
std::vector<bool> find_convolutions_backward(const TaskGraph& graph) {
  std::vector<bool> is_weights(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (task.kind != TaskKind::kConvolution) continue;
    for (const DataId id : task.reads) is_weights[index(id)] = graph[id].kind == DataKind::kState;
  }
  std::vector<bool> is_gradient(graph.data.size(), false);
  for (const Task& task : graph.tasks) {
    if (task.phase != Phase::kUpdate || !touches(task.reads, is_weights)) continue;
    for (const DataId id : task.reads) is_gradient[index(id)] = graph[id].kind == DataKind::kTensor;
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
    for (const DataId id : task.writes) result[index(id)] = true;
  }
  return result;
}

}  // namespace

TensorPool::TensorPool(const TaskGraph& graph, const Occupancy& occupancy,
                       const std::vector<TaskRun>& runs, bool may_offload)
    : occupancy_{occupancy} {
  const std::vector<bool> is_output = find_outputs_of_convolutions(graph);
  const std::vector<bool> is_backward = find_convolutions_backward(graph);
  const std::vector<Life> lives = find_lives(graph, runs);
  demand_ = prefetch::demand(graph, occupancy, runs, lives);
  std::ranges::copy_if(lives, std::back_inserter(tensors_), [&](const Life& life) {
    return may_offload && is_output[index(life.data)] && occupancy.is_movable(life.data);
  });
  for (Position p = 0; p < runs.size(); ++p) {
    const Task& task = graph[runs[p].task];
    is_forward_.push_back(task.phase == Phase::kForward && !runs[p].is_recomputation);
    if (is_forward_.back() && task.kind == TaskKind::kConvolution) forward_.push_back(p);
    if (is_backward[static_cast<std::size_t>(runs[p].task)]) backward_.push_back(p);
  }
}

TensorPool::Floor TensorPool::floor() const {
  std::vector<RoundTrip> all;
  for (const Life& life : tensors_) {
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      const Position next = life.accesses[a + 1].position;
      const Position needed = life.accesses[a].position + 1;
      const Absence absence{.size = occupancy_.size(life.data), .next = next, .needed = needed};
      all.push_back({.absence = absence, .back = next});
    }
  }
  const std::vector<Bytes> near = near_during(all, demand_);
  const auto most = std::ranges::max_element(near);
  if (most == near.end()) return {};
  return {.position = static_cast<Position>(most - near.begin()), .size = *most};
}

std::vector<RoundTrip> TensorPool::trips(Bytes pool, TensorPolicy policy) const {
  auto absences = cover(occupancy_, demand_, tensors_, pool, {.whole_blocks = true});
  um::expects(absences.has_value(), "a pool of at least the floor");
  if (policy == TensorPolicy::kEager) leave_eagerly(*absences);
  std::ranges::stable_sort(*absences, {}, &Absence::next);
  std::vector<RoundTrip> trips;
  for (const Absence& absence : *absences) {
    trips.push_back({.absence = absence, .back = absence.next});
  }
  std::vector<Bytes> near = near_during(trips, demand_);
  for (RoundTrip& trip : trips) {
    const Bytes size = trip.absence.size;
    const Position wanted = fetch_position(trip.absence);
    while (trip.back > wanted && near[trip.back - 1] + size <= pool) near[--trip.back] += size;
  }
  return trips;
}

// What memory makes leave, leaves before the next convolution; what it does not, too.
void TensorPool::leave_eagerly(std::vector<Absence>& absences) const {
  for (const Life& life : tensors_) {
    Position written = life.begin();
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      const Position last = life.accesses[a].position;
      const Position next = life.accesses[a + 1].position;
      if (life.accesses[a].writes) written = last;
      if (!is_forward_[last] || is_forward_[next]) continue;
      const auto convolution = std::ranges::upper_bound(forward_, last);
      if (convolution == forward_.end() || *convolution >= next) continue;
      const auto known = std::ranges::find_if(absences, [&](const Absence& absence) {
        return absence.data == life.data && absence.last == last;
      });
      if (known != absences.end()) {
        known->needed = std::min(known->needed, *convolution);
        continue;
      }
      absences.push_back({.data = life.data,
                          .size = occupancy_.size(life.data),
                          .written = written,
                          .last = last,
                          .next = next,
                          .needed = *convolution});
    }
  }
}

Position TensorPool::fetch_position(const Absence& absence) const {
  const auto after = std::ranges::lower_bound(backward_, absence.next);
  if (after == backward_.begin() || *std::prev(after) < absence.needed) return absence.next;
  return *std::prev(after);
}

}  // namespace spillway::prefetch
