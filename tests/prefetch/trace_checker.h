#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/timeline.h"
#include "tests/prefetch/promised_contents.h"
#include "um/bytes.h"

namespace spillway::prefetch::testing {

/// Computes near memory sizes independently of BlockSizes.
class CheckedRoom {
 public:
  CheckedRoom(const TaskGraph& graph, const Plan& plan)
      : graph_{graph}, page_{plan.page.count()}, pool_{find_pool(plan.budget.count())} {}

  /// True for a tensor or offloadable state of at least a quarter page, which moves in whole pages.
  [[nodiscard]] bool moves(DataId id) const {
    return graph_[id].may_leave() && 4 * graph_[id].size.count() >= page_;
  }
  [[nodiscard]] std::uint64_t pages(std::uint64_t size) const { return up(size, page_) / page_; }
  [[nodiscard]] std::uint64_t workspace(const TaskRun& run) const {
    const std::uint64_t size = graph_[run.task].algorithms[run.algorithm].workspace.count();
    return 4 * size < page_ ? 0 : up(size, page_);
  }
  /// Returns the bytes that the budget leaves beside pinned blocks and the buffer of small
  /// workspaces.
  [[nodiscard]] std::uint64_t pool() const { return pool_; }

 private:
  [[nodiscard]] static std::uint64_t up(std::uint64_t size, std::uint64_t unit) {
    return (size + unit - 1) / unit * unit;
  }
  [[nodiscard]] std::uint64_t find_pool(std::uint64_t budget) const {
    std::uint64_t pinned = 0;
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      if (!moves(DataId(i))) pinned += up(graph_.data[i].size.count(), 64);
    }
    std::uint64_t small = 0;
    for (const Task& task : graph_.tasks) {
      for (const Algorithm& algorithm : task.algorithms) {
        const std::uint64_t size = algorithm.workspace.count();
        if (4 * size < page_) small = std::max(small, size);
      }
    }
    return (budget - pinned - up(small, 64)) / page_ * page_;
  }

  const TaskGraph& graph_;
  std::uint64_t page_;
  std::uint64_t pool_;
};

/// Reports the first two overlapping entries on one engine, as a sentence, or "". A link that is
/// not duplex has one engine for both directions; runs have one, too.
inline std::string find_overlap(const Timeline& timeline, const LinkProfile& link) {
  const auto overlap = [](std::vector<Interval> intervals) {
    std::ranges::sort(intervals, {}, [](const Interval& i) { return std::tuple{i.begin, i.end}; });
    for (std::size_t i = 1; i < intervals.size(); ++i) {
      if (intervals[i].begin < intervals[i - 1].end) return true;
    }
    return false;
  };
  if (overlap(timeline.runs)) return "two runs overlap";
  if (overlap(timeline.offloads)) return "two offloads overlap";
  if (overlap(timeline.prefetches)) return "two prefetches overlap";
  std::vector<Interval> both = timeline.offloads;
  both.insert(both.end(), timeline.prefetches.begin(), timeline.prefetches.end());
  return !link.is_duplex && overlap(both) ? "an offload and a prefetch overlap" : "";
}

/// An event of an executed step, of the run, far run or move `index` of its plan.
struct TraceEvent {
  // At equal times: ends before begins, and the end of a transfer before its room is free.
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

/// Returns when the room of an offload is free: the transfer and the remaining readers have ended.
inline um::Nanoseconds leaving_time(const Plan& plan, const Timeline& timeline,
                                    std::size_t offload) {
  const std::uint32_t runs = plan.offloads[offload].frees_after();
  const um::Nanoseconds end = timeline.offloads[offload].end;
  return runs == 0 ? end : std::max(end, timeline.runs[runs - 1].end);
}

/// Returns all events of a step in order.
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

/// Returns the move of the event.
inline const Move& move_of(const Plan& plan, const TraceEvent& event) {
  const bool comes =
      event.kind == TraceEvent::kPrefetchBegins || event.kind == TraceEvent::kPrefetchEnds;
  return comes ? plan.prefetches[event.index] : plan.offloads[event.index];
}

/// Replays an executed step, event by event, and reports the first error, or "". Independent of
/// verify(): keeps its own record of near pages, of the content of each near and far page, of lives
/// and of sizes.
class TraceChecker {
 public:
  TraceChecker(const TaskGraph& graph, const Plan& plan, const Timeline& timeline)
      : graph_{graph},
        plan_{plan},
        room_{graph, plan},
        page_{plan.page.count()},
        promised_{graph},
        dying_{dying_operands(graph, plan.runs)},
        events_{trace_events(plan, timeline)} {
    find_far_all_the_time();
    for (std::size_t i = 0; i < graph.data.size(); ++i) add_pages(DataId(i));
    find_far_between_steps();
    for (const auto& block : pages_) {
      for (const Page& page : block) in_use_ += page.is_near && room_.moves(page.data) ? page_ : 0;
    }
  }

  std::string check() {
    for (const TraceEvent& event : events_) {
      happen(event);
      if (in_use_ > room_.pool()) {
        wrong(std::to_string(in_use_ - room_.pool()) + " bytes more than the budget");
      }
      if (!wrong_.empty()) return wrong_ + " at " + std::to_string(event.time.count()) + " ns";
    }
    return at_end();
  }

 private:
  static constexpr Content kUpdatedFar = ~0U;
  struct Page {
    DataId data{};
    bool is_near = false;
    bool is_coming = false;
    Content near = kNothing;
    Content far = kNothing;
    Content leaving = kNothing;  // content that the transfer in flight copies out
    bool starts_near = false;
    bool starts_copied = false;  // near, with a valid far copy
  };

  // Finds blocks that only the far side uses between steps: gradients without content, and
  // optimizer state that is never near.
  void find_far_all_the_time() {
    starts_far_.assign(graph_.data.size(), false);
    for (const FarUpdate& update : graph_.far_updates) {
      starts_far_[static_cast<std::size_t>(update.gradient)] = true;
      starts_far_[static_cast<std::size_t>(update.parameters)] = true;
      for (const DataId id : update.numbers) starts_far_[static_cast<std::size_t>(id)] = true;
    }
  }

  // A pinned block is one page, always near.
  void add_pages(DataId id) {
    const std::uint64_t size = graph_[id].size.count();
    const bool is_state = graph_[id].kind == DataKind::kState;
    const bool starts_far = starts_far_[static_cast<std::size_t>(id)];
    const bool starts_near = !starts_far && (is_state || !room_.moves(id));
    const Content first = is_state && !starts_far ? kInitial : kNothing;
    pages_.emplace_back(room_.moves(id) ? room_.pages(size) : 1,
                        Page{.data = id,
                             .is_near = starts_near,
                             .near = first,
                             .far = starts_far && !graph_[id].is_sent ? kInitial : kNothing,
                             .starts_near = starts_near});
  }

  // State that is prefetched before it is offloaded was far from the start. State that is freed
  // first without a copy had a far copy.
  void find_far_between_steps() {
    std::vector<std::vector<bool>> has_moved;
    for (const auto& block : pages_) has_moved.emplace_back(block.size(), false);
    for (const TraceEvent& event : events_) {
      if (event.kind != TraceEvent::kRoomIsFree && event.kind != TraceEvent::kPrefetchBegins)
        continue;
      const Move& move = move_of(plan_, event);
      const auto data = static_cast<std::size_t>(move.data);
      for (std::size_t i = begin_of(move); i < end_of(move); ++i) {
        const bool is_first = !has_moved[data][i];
        has_moved[data][i] = true;
        if (!is_first || !graph_.data[data].is_offloadable) continue;
        if (event.kind == TraceEvent::kPrefetchBegins)
          pages_[data][i] = {.data = move.data, .far = kInitial};
        if (event.kind != TraceEvent::kRoomIsFree || !move.is_clean) continue;
        pages_[data][i].far = kInitial;
        pages_[data][i].starts_copied = true;
      }
    }
  }

  [[nodiscard]] std::size_t begin_of(const Move& move) const { return move.offset.count() / page_; }
  [[nodiscard]] std::size_t end_of(const Move& move) const {
    return (move.offset + move.size).count() / page_;
  }
  std::vector<Page>& pages_of(DataId id) { return pages_[static_cast<std::size_t>(id)]; }

  void wrong(const std::string& reason) {
    if (wrong_.empty()) wrong_ = reason;
  }

  void happen(const TraceEvent& event) {
    if (event.kind == TraceEvent::kRunBegins) return begin_run(plan_.runs[event.index]);
    if (event.kind == TraceEvent::kRunEnds) return end_run(event.index);
    if (event.kind == TraceEvent::kFarRunBegins) return update_far(plan_.far_runs[event.index]);
    const Move& move = move_of(plan_, event);
    for (std::size_t i = begin_of(move); i < end_of(move); ++i) {
      Page& page = pages_of(move.data).at(i);
      if (event.kind == TraceEvent::kOffloadBegins) begin_offload(page);
      if (event.kind == TraceEvent::kOffloadEnds) end_offload(page);
      if (event.kind == TraceEvent::kRoomIsFree) leave(page);
      if (event.kind == TraceEvent::kPrefetchBegins) begin_prefetch(page);
      if (event.kind == TraceEvent::kPrefetchEnds) end_prefetch(page);
    }
  }

  [[nodiscard]] const std::string& name(const Page& page) const { return graph_[page.data].name; }

  void begin_run(const TaskRun& run) {
    in_use_ += room_.workspace(run);
    const Task& task = graph_[run.task];
    const Promise& promise = promised_[run.task];
    for (std::size_t i = 0; i < task.reads.size(); ++i) {
      use(task, task.reads[i], promise.reads[i]);
    }
    for (std::size_t i = 0; i < task.updates_once.size() && !run.is_recomputation; ++i) {
      use(task, task.updates_once[i], promise.updates[i]);
    }
    for (const DataId id : task.writes) begin_write(task, id);
  }

  void use(const Task& task, DataId id, Content promised) {
    for (const Page& page : pages_of(id)) {
      if (!page.is_near) wrong(task.name + " uses " + name(page) + ", part of which is far");
      if (page.near != promised) wrong(task.name + " finds other content in " + name(page));
    }
  }

  void begin_write(const Task& task, DataId id) {
    for (Page& page : pages_of(id)) {
      const bool was_near = page.is_near;
      if (!was_near && graph_[id].kind == DataKind::kState && !graph_[id].is_sent) {
        wrong(task.name + " updates " + name(page) + ", part of which is far");
      }
      if (page.is_coming) wrong(task.name + " writes " + name(page) + " while it comes");
      if (page.leaving != kNothing) wrong(task.name + " writes " + name(page) + " as it leaves");
      if (!was_near) in_use_ += page_;
      page.is_near = true;
      page.near = kNothing;
    }
  }

  void end_run(std::size_t index) {
    const TaskRun& run = plan_.runs[index];
    in_use_ -= room_.workspace(run);
    const Task& task = graph_[run.task];
    for (const DataId id : task.writes) write(id, PromisedContents::written_by(run.task));
    if (!run.is_recomputation) {
      for (const DataId id : task.updates_once) write(id, PromisedContents::written_by(run.task));
    }
    for (const DataId id : dying_[index]) {
      if (room_.moves(id)) die(id);
    }
  }

  void write(DataId id, Content content) {
    for (Page& page : pages_of(id)) page.near = content;
  }

  void die(DataId id) {
    for (Page& page : pages_of(id)) {
      if (page.is_near) in_use_ -= page_;
      page = {.data = id};
    }
  }

  // Gives the parameters new content, which no task of this step may read.
  void update_far(const FarRun& run) {
    const FarUpdate& update = graph_.far_updates[run.update];
    const auto expect_far = [&](DataId id, Content content) {
      for (const Page& page : pages_of(id)) {
        if (page.is_near || page.is_coming || page.leaving != kNothing) {
          wrong(update.name + " uses " + name(page) + ", part of which is not all far");
        }
        if (page.far != content && page.far != kUpdatedFar) {
          wrong(update.name + " finds other content in " + name(page));
        }
      }
    };
    expect_far(update.gradient, promised_.final(update.gradient));
    expect_far(update.parameters, kInitial);
    for (const DataId id : update.numbers) expect_far(id, kInitial);
    for (Page& page : pages_of(update.parameters)) page.far = kUpdatedFar;
  }

  void begin_offload(Page& page) {
    if (!page.is_near) wrong(name(page) + " is copied out when part of it is not near");
    if (page.near == kNothing) wrong(name(page) + " is copied out before it is written");
    page.leaving = page.near;
  }

  void end_offload(Page& page) {
    if (!page.is_near || page.near != page.leaving) wrong(name(page) + " changes as it leaves");
    page.far = page.leaving;
    page.leaving = kNothing;
  }

  void leave(Page& page) {
    if (!page.is_near) wrong(name(page) + " leaves when part of it is not near");
    if (page.far != page.near) wrong(name(page) + " leaves and its content is nowhere else");
    if (page.is_near) in_use_ -= page_;
    page.is_near = false;
    page.near = kNothing;
  }

  void begin_prefetch(Page& page) {
    if (page.is_near || page.is_coming) wrong(name(page) + " comes while it is near");
    if (page.far == kNothing || page.leaving != kNothing) {
      wrong(name(page) + " comes when it is not all far");
    }
    page.is_coming = true;
    in_use_ += page_;
  }

  void end_prefetch(Page& page) {
    page.is_coming = false;
    page.is_near = true;
    page.near = page.far;
  }

  [[nodiscard]] std::string at_end() const {
    std::uint64_t near = 0;
    for (const auto& block : pages_) {
      for (const Page& page : block) {
        if (room_.moves(page.data) && page.is_near) near += page_;
        if (page.is_near != page.starts_near) return name(page) + " does not end where it began";
        if (graph_[page.data].kind != DataKind::kState) continue;
        if (!page.is_near && page.far == kUpdatedFar) continue;
        if ((page.is_near ? page.near : page.far) != promised_.final(page.data)) {
          return name(page) + " ends the step with other content";
        }
        if (page.starts_copied && page.far != page.near) {
          return name(page) + " ends the step with a stale far copy";
        }
      }
    }
    return near == in_use_ ? "" : "bytes are left near after the step";
  }

  const TaskGraph& graph_;
  const Plan& plan_;
  CheckedRoom room_;
  std::uint64_t page_;
  PromisedContents promised_;
  std::vector<std::vector<DataId>> dying_;
  std::vector<TraceEvent> events_;
  std::vector<bool> starts_far_;          // by block
  std::vector<std::vector<Page>> pages_;  // by block
  std::uint64_t in_use_ = 0;
  std::string wrong_;
};

/// Checks everything; returns the first error of an executed step, or "".
inline std::string check_trace(const TaskGraph& graph, const Plan& plan, const Timeline& timeline,
                               const LinkProfile& link) {
  const std::string engines = find_overlap(timeline, link);
  return engines.empty() ? TraceChecker{graph, plan, timeline}.check() : engines;
}

}  // namespace spillway::prefetch::testing
