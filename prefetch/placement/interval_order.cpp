#include "prefetch/placement/interval_order.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

Progress furthest(const Progress& a, const Progress& b) {
  return {.runs = std::max(a.runs, b.runs),
          .offloads = std::max(a.offloads, b.offloads),
          .prefetches = std::max(a.prefetches, b.prefetches)};
}

// What has surely ended when each entry of a plan begins, by executing its conditions.
class Beginnings {
 public:
  explicit Beginnings(const Plan& plan) {
    Progress now;
    bool moved = true;
    while (moved) {
      moved = advance(plan.runs, now, &Progress::runs, runs_);
      moved = advance(plan.offloads, now, &Progress::offloads, offloads_) || moved;
      moved = advance(plan.prefetches, now, &Progress::prefetches, prefetches_) || moved;
    }
    um::expects(runs_.size() == plan.runs.size() && prefetches_.size() == plan.prefetches.size(),
                "a verified plan does not wait for ever");
  }

  [[nodiscard]] const Progress& of_run(std::size_t run) const { return runs_[run]; }
  [[nodiscard]] const Progress& of_prefetch(std::size_t move) const { return prefetches_[move]; }
  /// The first run that begins only when `ended` has been reached; all runs when none does.
  [[nodiscard]] Position first_run_after(const Progress& ended) const {
    const auto is_before = [&](const Progress& begun) { return !begun.reaches(ended); };
    return static_cast<Position>(std::ranges::partition_point(runs_, is_before) - runs_.begin());
  }

 private:
  template <typename Entry>
  bool advance(const std::vector<Entry>& queue, Progress& now, std::uint32_t Progress::*count,
               std::vector<Progress>& begun) {
    const std::size_t before = begun.size();
    while (begun.size() < queue.size() && now.reaches(queue[begun.size()].after)) {
      Progress sure = implied_by(queue[begun.size()].after);
      if (!begun.empty()) sure = furthest(sure, begun.back());  // it began after the one before it
      if (count == &Progress::runs) sure.runs = now.runs;       // and runs have ended by then, too
      begun.push_back(sure);
      ++(now.*count);
    }
    return begun.size() != before;
  }

  // What ended last had begun, and so on.
  [[nodiscard]] Progress implied_by(const Progress& after) const {
    Progress sure = after;
    if (after.runs > 0) sure = furthest(sure, runs_[after.runs - 1]);
    if (after.offloads > 0) sure = furthest(sure, offloads_[after.offloads - 1]);
    if (after.prefetches > 0) sure = furthest(sure, prefetches_[after.prefetches - 1]);
    return sure;
  }

  std::vector<Progress> runs_;
  std::vector<Progress> offloads_;
  std::vector<Progress> prefetches_;
};

}  // namespace

std::vector<IntervalSpan> find_spans(const Plan& plan, std::span<const NearInterval> intervals) {
  const Beginnings beginnings{plan};
  const auto runs = static_cast<Position>(plan.runs.size());
  std::vector<IntervalSpan> spans;
  spans.reserve(intervals.size());
  for (const NearInterval& interval : intervals) {
    IntervalSpan span;
    span.begun = interval.is_prefetched ? beginnings.of_prefetch(interval.first)
                                        : beginnings.of_run(interval.first);
    span.ended.runs =
        interval.is_offloaded ? plan.offloads[interval.last].frees_after() : interval.last + 1;
    span.ended.offloads = interval.is_offloaded ? interval.last + 1 : 0;
    span.begin = span.begun.runs;
    span.end = beginnings.first_run_after(span.ended);
    span.spans_steps = interval.spans_steps;
    if (span.spans_steps) {
      if (!interval.is_offloaded) span.ended.runs = runs + 1;
      span.begin = 0;
      span.end = runs;
    }
    spans.push_back(span);
  }
  return spans;
}

}  // namespace spillway::prefetch
