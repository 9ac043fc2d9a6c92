#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "prefetch/placement/near_intervals.h"
#include "prefetch/plan.h"

namespace spillway::prefetch::testing {

/// Executes a plan's conditions with random timing: at each moment one possible event happens. Runs
/// follow one another. Moves of one direction are issued in order, any number at once, and end in
/// any order; a move counts as ended when all earlier ones have ended, too.
class DrawnWalk {
 public:
  DrawnWalk(const Plan& plan, std::uint64_t seed)
      : plan_{plan}, random_{seed}, haste_{random_() % 4} {
    offloads_.has_ended.resize(plan.offloads.size());
    prefetches_.has_ended.resize(plan.prefetches.size());
  }

  /// Lets one event happen; returns false when everything has ended, or nothing can proceed.
  bool step() {
    std::vector<Event> events;
    const Progress now = progress();
    if (is_running_) {
      events.emplace_back([this] {
        is_running_ = false;
        ++runs_;
      });
    } else if (runs_ < plan_.runs.size() && now.reaches(plan_.runs[runs_].after)) {
      events.emplace_back([this] { is_running_ = true; });
    }
    add_moves(plan_.offloads, offloads_, now, events);
    add_moves(plan_.prefetches, prefetches_, now, events);
    if (events.empty()) return false;
    events[random_() % events.size()]();
    return true;
  }

  [[nodiscard]] bool is_over() const {
    return !is_running_ && progress() == Progress{.runs = size(plan_.runs),
                                                  .offloads = size(plan_.offloads),
                                                  .prefetches = size(plan_.prefetches)};
  }
  /// True while a run is in flight.
  [[nodiscard]] bool is_running() const { return is_running_; }
  [[nodiscard]] std::uint32_t run() const { return runs_; }

  /// True while the near interval occupies near memory.
  [[nodiscard]] bool is_near(const NearInterval& interval) const {
    if (!interval.spans_steps) return has_begun(interval) && !has_ended(interval);
    return !interval.is_offloaded || has_begun(interval) || !has_ended(interval);
  }

 private:
  using Event = std::function<void()>;  // performs the event
  struct Moves {
    std::uint32_t begun = 0;
    std::vector<bool> has_ended;
    [[nodiscard]] std::uint32_t counted() const {
      std::uint32_t count = 0;
      while (count < begun && has_ended[count]) ++count;
      return count;
    }
  };

  template <typename Entry>
  static std::uint32_t size(const std::vector<Entry>& queue) {
    return static_cast<std::uint32_t>(queue.size());
  }

  void add_moves(const std::vector<Move>& queue, Moves& moves, const Progress& now,
                 std::vector<Event>& events) const {
    if (moves.begun < queue.size() && now.reaches(queue[moves.begun].after)) {
      // More frequent in some walks: early moves create more overlaps.
      for (std::uint64_t i = 0; i <= haste_; ++i) events.emplace_back([&moves] { ++moves.begun; });
    }
    for (std::uint32_t i = 0; i < moves.begun; ++i) {
      if (!moves.has_ended[i]) events.emplace_back([&moves, i] { moves.has_ended[i] = true; });
    }
  }

  [[nodiscard]] Progress progress() const {
    return {.runs = runs_, .offloads = offloads_.counted(), .prefetches = prefetches_.counted()};
  }
  [[nodiscard]] bool has_begun(const NearInterval& interval) const {
    if (interval.is_prefetched) return prefetches_.begun > interval.first;
    return runs_ > interval.first || (is_running_ && runs_ == interval.first);
  }
  // A block's room is free when its copy and the tasks that still read it have ended.
  [[nodiscard]] bool has_ended(const NearInterval& interval) const {
    if (!interval.is_offloaded) return runs_ > interval.last;
    return offloads_.has_ended[interval.last] &&
           runs_ >= plan_.offloads[interval.last].frees_after();
  }

  const Plan& plan_;
  std::mt19937_64 random_;
  std::uint64_t haste_;
  std::uint32_t runs_ = 0;
  bool is_running_ = false;
  Moves offloads_;
  Moves prefetches_;
};

}  // namespace spillway::prefetch::testing
