#include "prefetch/planners/joint/alike.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

namespace spillway::prefetch {
namespace {

// The values of `groups` with two members or more, in order of their first one.
template <typename Key>
std::vector<Group> repeated(std::map<Key, Group> groups) {
  std::vector<Group> result;
  for (auto& [key, group] : groups) {
    if (group.size() > 1) result.push_back(std::move(group));
  }
  std::ranges::sort(result, {}, [](const Group& group) { return group.front(); });
  return result;
}

// The magnitudes of the times of a task and of its neighbours.
std::vector<int> amid(const Problem& problem, std::size_t task) {
  constexpr std::size_t kBeside = 2;  // on each side
  const std::size_t first = task - std::min(task, kBeside);
  const std::size_t end = std::min(problem.graph.tasks.size(), task + kBeside + 1);
  std::vector<int> result;
  for (std::size_t t = first; t < end; ++t) {
    result.push_back(magnitude(static_cast<double>(problem.profile(TaskId(t), 0).count())));
  }
  return result;
}

}  // namespace

int magnitude(double value) {
  constexpr int kClasses = 8;  // for each power of two
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // from one half up to one
  return kClasses * exponent + static_cast<int>(2 * kClasses * (mantissa - 0.5));
}

std::vector<Group> alike_blocks(const DecisionSpace& space, const Problem& problem) {
  std::vector<std::size_t> made(problem.graph.data.size());  // by block: the last forward task
  for (std::size_t t = 0; t < problem.graph.tasks.size(); ++t) {
    const Task& task = problem.graph.tasks[t];
    if (task.phase != Phase::kForward) continue;
    for (const DataId id : task.writes) made[static_cast<std::size_t>(id)] = t;
  }
  std::map<std::pair<um::Bytes, std::vector<int>>, Group> groups;
  const std::vector<Recomputable>& blocks = space.droppable();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    groups[{blocks[i].size, amid(problem, made[static_cast<std::size_t>(blocks[i].data)])}]
        .push_back(static_cast<std::uint32_t>(i));
  }
  return repeated(std::move(groups));
}

std::vector<Group> alike_intervals(const DecisionSpace& space, const Problem& problem) {
  std::map<std::pair<um::Bytes, std::vector<int>>, Group> groups;
  const std::vector<DecisionSpace::Interval>& intervals = space.intervals();
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const DecisionSpace::Interval& each = intervals[i];
    std::vector<int> key = amid(problem, each.last);
    std::ranges::copy(amid(problem, each.next), std::back_inserter(key));
    groups[{problem.graph[each.data].size, std::move(key)}].push_back(
        static_cast<std::uint32_t>(i));
  }
  return repeated(std::move(groups));
}

}  // namespace spillway::prefetch
