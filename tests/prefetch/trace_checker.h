#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "prefetch/plan.h"
#include "prefetch/simulate.h"

namespace spillway::prefetch::testing {

/// When offload `i` has made room: its transfer has ended, and so have the runs that read on.
inline um::Nanoseconds leaving_time(const Plan& plan, const Timeline& timeline, std::size_t i) {
  const std::uint32_t runs = plan.offloads[i].frees_after();
  const um::Nanoseconds end = timeline.offloads[i].end;
  return runs == 0 ? end : std::max(end, timeline.runs[runs - 1].end);
}

/// Which pages of offloadable state are near when the step begins: all but those that come before
/// they leave.
inline std::vector<std::vector<bool>> near_at_start(const TaskGraph& graph, const Plan& plan,
                                                    const Timeline& timeline,
                                                    const Occupancy& occupancy) {
  struct First {
    um::Nanoseconds leaves = um::Nanoseconds::max();
    um::Nanoseconds comes = um::Nanoseconds::max();
  };
  std::map<std::pair<std::size_t, std::uint64_t>, First> firsts;
  const std::uint64_t page = plan.page.count();
  const auto note = [&](const Move& move, um::Nanoseconds time, um::Nanoseconds First::*when) {
    for (std::uint64_t i = move.offset.count() / page; i < (move.offset + move.size).count() / page;
         ++i) {
      um::Nanoseconds& first = firsts[{static_cast<std::size_t>(move.data), i}].*when;
      first = std::min(first, time);
    }
  };
  for (std::size_t i = 0; i < plan.offloads.size(); ++i) {
    note(plan.offloads[i], leaving_time(plan, timeline, i), &First::leaves);
  }
  for (std::size_t i = 0; i < plan.prefetches.size(); ++i) {
    note(plan.prefetches[i], timeline.prefetches[i].begin, &First::comes);
  }
  std::vector<std::vector<bool>> near;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    near.emplace_back(occupancy.size(DataId(i)).count() / page, graph.data[i].is_offloadable);
  }
  for (const auto& [where, first] : firsts) {
    if (first.comes < first.leaves) near[where.first][where.second] = false;
  }
  return near;
}

/// Replays an executed step, event by event, with its own bookkeeping (pages of each block, near or
/// not) and reports the first thing that is wrong, or "". Shares with verify() only what says how
/// long a block lives and what it takes (find_lives(), Occupancy).
inline std::string check_trace(const TaskGraph& graph, const Plan& plan, const Timeline& timeline) {
  const Occupancy occupancy{graph, plan.page};
  const std::uint64_t page = plan.page.count();
  const auto at_start = near_at_start(graph, plan, timeline, occupancy);
  auto near = at_start;  // by block and page
  std::multimap<Position, DataId> deaths;
  for (const Life& life : find_lives(graph, plan.runs)) {
    if (!life.outlives_step()) deaths.emplace(life.last(), life.data);
  }

  struct Event {
    um::Nanoseconds time;
    int order;  // at one time: ends before begins
    int kind;   // 0 run ends, 1 offload ends, 2 prefetch ends, 3 run begins, 4 prefetch begins
    std::size_t index;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    events.push_back({timeline.runs[i].begin, 1, 3, i});
    events.push_back({timeline.runs[i].end, 0, 0, i});
  }
  for (std::size_t i = 0; i < plan.offloads.size(); ++i)
    events.push_back({leaving_time(plan, timeline, i), 0, 1, i});
  for (std::size_t i = 0; i < plan.prefetches.size(); ++i) {
    events.push_back({timeline.prefetches[i].begin, 1, 4, i});
    events.push_back({timeline.prefetches[i].end, 0, 2, i});
  }
  std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time
                            : (a.order != b.order ? a.order < b.order : a.index < b.index);
  });

  std::int64_t in_use = 0;
  for (const auto& pages : near) {
    in_use += std::ranges::count(pages, true) * static_cast<std::int64_t>(page);
  }
  const std::int64_t in_use_at_start = in_use;
  const auto pool = static_cast<std::int64_t>(occupancy.pool(plan.budget).count());
  std::vector<std::vector<bool>> coming;  // pages whose prefetch has begun and not ended
  for (const auto& pages : near) coming.emplace_back(pages.size(), false);
  const auto set = [&](std::vector<bool>& pages, std::size_t i, bool value) {
    if (pages[i] != value) in_use += (value ? 1 : -1) * static_cast<std::int64_t>(page);
    pages[i] = value;
  };
  for (const Event& event : events) {
    if (event.kind == 3 || event.kind == 0) {
      const TaskRun& run = plan.runs[event.index];
      const Task& task = graph[run.task];
      const auto workspace = static_cast<std::int64_t>(
          occupancy.workspace_size(task.algorithms[run.algorithm].workspace).count());
      in_use += event.kind == 3 ? workspace : -workspace;
      if (event.kind == 3) {
        for (const DataId id : task.reads) {
          if (!graph[id].may_leave()) continue;
          for (const bool is_near : near[static_cast<std::size_t>(id)]) {
            if (!is_near) return task.name + " reads " + graph[id].name + ", part of which is far";
          }
        }
        for (const DataId id : task.writes) {
          auto& pages = near[static_cast<std::size_t>(id)];
          if (graph[id].is_offloadable && std::ranges::count(pages, false) > 0) {
            return task.name + " updates " + graph[id].name + ", part of which is far";
          }
          for (std::size_t i = 0; i < pages.size(); ++i) set(pages, i, true);
        }
      } else {
        const auto [first, last] = deaths.equal_range(static_cast<Position>(event.index));
        for (auto it = first; it != last; ++it) {
          auto& pages = near[static_cast<std::size_t>(it->second)];
          for (std::size_t i = 0; i < pages.size(); ++i) set(pages, i, false);
        }
      }
    } else {
      const Move& move =
          event.kind == 1 ? plan.offloads[event.index] : plan.prefetches[event.index];
      const auto data = static_cast<std::size_t>(move.data);
      for (std::uint64_t i = move.offset.count() / page;
           i < (move.offset + move.size).count() / page; ++i) {
        if (event.kind == 1) set(near[data], i, false);
        if (event.kind == 4) set(coming[data], i, true);
        if (event.kind == 2) {
          set(coming[data], i, false);
          set(near[data], i, true);
        }
      }
    }
    if (in_use > pool)
      return "more than the budget at " + std::to_string(event.time.count()) + " ns";
  }
  if (near != at_start) return "a page does not end the step where it began";
  return in_use == in_use_at_start ? "" : "bytes are left near after the step";
}

}  // namespace spillway::prefetch::testing
