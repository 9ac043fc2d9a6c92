#include "src/plan/state_passing.h"

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/state_home.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway {
namespace {

using prefetch::DataId;
using um::Bytes;

struct Traffic {
  Bytes out;
  Bytes in;
};

// A block of movable state between the steps of one plan.
struct StateAtHome {
  std::vector<bool> far_pages;
  bool is_written = false;  // by the step
};

// By name, which is the same in all steps.
using Homes = std::map<std::string_view, StateAtHome>;

Homes homes_of(const prefetch::TaskGraph& graph, const prefetch::Plan& plan) {
  const prefetch::BlockSizes block_sizes{graph, plan.page};
  const prefetch::StateHome home{graph, block_sizes, plan};
  Homes homes;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const DataId id{static_cast<std::uint32_t>(i)};
    if (!graph[id].is_offloadable || !block_sizes.is_movable(id)) continue;
    homes[graph[id].name] = {.far_pages = home.far_pages(id)};
  }
  for (const prefetch::Task& task : graph.tasks) {
    prefetch::for_each_written(task, [&](DataId id) {
      const auto found = homes.find(graph[id].name);
      if (found != homes.end()) found->second.is_written = true;
    });
  }
  return homes;
}

// What moves when the step with homes `to` follows the one with `from`.
Traffic passed_on(const Homes& from, const Homes& to, Bytes page, MemoryMode memory) {
  Traffic traffic;
  for (const auto& [name, next] : to) {
    const auto found = from.find(name);
    for (std::size_t i = 0; i < next.far_pages.size(); ++i) {
      const bool was_far = found == from.end() || found->second.far_pages[i];
      const bool is_far = next.far_pages[i];
      const bool all_move = memory == MemoryMode::kCopy;
      if (!is_far && (was_far || all_move)) traffic.in += page;
      if (was_far || !(is_far || all_move)) continue;
      if (!all_move || found->second.is_written) traffic.out += page;
    }
  }
  return traffic;
}

}  // namespace

um::Nanoseconds state_passing_time(const Workload& workload,
                                   std::span<const prefetch::Profile> profiles, const Plans& plans,
                                   MemoryMode memory) {
  const std::vector<RepeatedStep>& steps = workload.training_steps();
  if (steps.size() < 2 || memory == MemoryMode::kResident) return um::Nanoseconds{0};
  std::vector<Homes> homes;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    homes.push_back(homes_of(steps[i].step.graph, plans.training[i]));
  }
  const prefetch::LinkProfile& link = profiles.front().link;
  const std::vector<std::size_t>& sequence = workload.sequence();
  um::Nanoseconds time{0};
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const std::size_t next = sequence[(i + 1) % sequence.size()];
    if (next == sequence[i]) continue;
    const Traffic traffic = passed_on(homes[sequence[i]], homes[next], workload.page(), memory);
    time += traffic.out / link.offload + traffic.in / link.prefetch;
  }
  return time;
}

}  // namespace spillway
