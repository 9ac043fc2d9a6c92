#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "um/bytes.h"

namespace spillway::prefetch::testing {

/// Something that happens in an executed step: to run, far run or move `index` of its plan.
struct TraceEvent {
  // At one moment: ends before begins, the end of a transfer before its room counts as free.
  enum Kind : std::uint8_t {
    kRunEnds,
    kOffloadEnds,
    kPrefetchEnds,
    kRoomIsFree,
    kRunBegins,
    kOffloadBegins,
    kPrefetchBegins,
    kFarRunBegins
  };
  um::Nanoseconds time{0};
  Kind kind{};
  std::size_t index = 0;
};

/// When the room of an offload is free: the transfer has ended, and so have the runs that read on.
inline um::Nanoseconds leaving_time(const Plan& plan, const Timeline& timeline,
                                    std::size_t offload) {
  const std::uint32_t runs = plan.offloads[offload].frees_after();
  const um::Nanoseconds end = timeline.offloads[offload].end;
  return runs == 0 ? end : std::max(end, timeline.runs[runs - 1].end);
}

/// All of a step in order.
inline std::vector<TraceEvent> trace_events(const Plan& plan, const Timeline& timeline) {
  std::vector<TraceEvent> events;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    events.push_back({timeline.runs[i].begin, TraceEvent::kRunBegins, i});
    events.push_back({timeline.runs[i].end, TraceEvent::kRunEnds, i});
  }
  for (std::size_t i = 0; i < plan.offloads.size(); ++i) {
    events.push_back({leaving_time(plan, timeline, i), TraceEvent::kRoomIsFree, i});
    if (plan.offloads[i].is_clean) continue;  // nothing is transferred
    events.push_back({timeline.offloads[i].begin, TraceEvent::kOffloadBegins, i});
    events.push_back({timeline.offloads[i].end, TraceEvent::kOffloadEnds, i});
  }
  for (std::size_t i = 0; i < plan.prefetches.size(); ++i) {
    events.push_back({timeline.prefetches[i].begin, TraceEvent::kPrefetchBegins, i});
    events.push_back({timeline.prefetches[i].end, TraceEvent::kPrefetchEnds, i});
  }
  for (std::size_t i = 0; i < plan.far_runs.size(); ++i) {
    events.push_back({timeline.far_runs[i].begin, TraceEvent::kFarRunBegins, i});
  }
  std::ranges::sort(events, {}, [](const TraceEvent& event) {
    return std::tuple{event.time, event.kind, event.index};
  });
  return events;
}

/// The move that begins, ends or gives room then.
inline const Move& move_of(const Plan& plan, const TraceEvent& event) {
  const bool comes =
      event.kind == TraceEvent::kPrefetchBegins || event.kind == TraceEvent::kPrefetchEnds;
  return comes ? plan.prefetches[event.index] : plan.offloads[event.index];
}

}  // namespace spillway::prefetch::testing
