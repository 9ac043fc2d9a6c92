#include "prefetch/bounds/exchange_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "prefetch/task_operands.h"

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;

// By exchange: the time of the tasks that use its gradients afterwards.
std::vector<Nanoseconds> times_of_users(const TaskGraph& graph,
                                        const std::vector<Nanoseconds>& times) {
  const std::vector<std::uint32_t> exchange = exchange_of_blocks(graph);
  std::vector<Nanoseconds> users(graph.exchanges.size(), Nanoseconds{0});
  std::vector<std::uint32_t> used;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    used.clear();
    for_each_operand(task, [&](DataId id) {
      const std::uint32_t e = exchange[static_cast<std::size_t>(id)];
      if (e > 0 && TaskId(t) > graph.exchanges[e - 1].ready) used.push_back(e - 1);
    });
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (const std::uint32_t e : used) users[e] += times[t];
  }
  return users;
}

}  // namespace

Nanoseconds exchange_bound(const TaskGraph& graph, const Profile& profile) {
  if (graph.exchanges.empty()) return Nanoseconds{0};
  std::vector<Nanoseconds> times;
  std::vector<Nanoseconds> ended{Nanoseconds{0}};  // by k: when the first k tasks have
  for (const std::vector<Nanoseconds>& durations : profile.durations) {
    times.push_back(*std::ranges::min_element(durations));
    ended.push_back(ended.back() + times.back());
  }
  const std::vector<Nanoseconds> users = times_of_users(graph, times);
  Nanoseconds bound{0};
  Nanoseconds lane{0};
  Nanoseconds least_after = Nanoseconds::max();
  for (std::size_t e = graph.exchanges.size(); e-- > 0;) {
    lane += profile.exchanges[e].alone;
    least_after = std::min(least_after, users[e]);
    const auto ready = static_cast<std::size_t>(graph.exchanges[e].ready);
    bound = std::max(bound, ended[ready + 1] + lane + least_after);
  }
  return bound;
}

}  // namespace spillway::prefetch
