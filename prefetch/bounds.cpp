#include "prefetch/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

double to_double(Bytes size) { return static_cast<double>(size.count()); }

// Rounded down, past what rounding errors may have added: a bound must not be too high.
um::Nanoseconds at_least(double seconds) {
  return um::Nanoseconds{static_cast<std::int64_t>(seconds * (1 - 1e-12) * 1e9)};
}

constexpr double kNever = std::numeric_limits<double>::infinity();

// How long it takes at least until some of the bytes that become available one after another have
// crossed a link.
class TransferCurve {
 public:
  explicit TransferCurve(double bytes_per_second) : rate_{bytes_per_second} {}

  void add(double available, double size) {
    parts_.push_back({.available = available, .size = size});
  }

  // Call it once, after all add().
  void finish() {
    std::ranges::stable_sort(parts_, {}, &Part::available);
    double bytes = 0;
    double now = 0;
    for (Part& part : parts_) {
      now = std::max(now, part.available) + part.size / rate_;
      bytes += part.size;
      totals_.push_back(bytes);
      ends_.push_back(now);
    }
  }

  // Increases with `bytes`, and jumps where the next part is not available yet.
  [[nodiscard]] double time(double bytes) const {
    if (bytes <= 0) return 0;
    const auto part = std::ranges::lower_bound(totals_, bytes);
    if (part == totals_.end()) return kNever;
    return ends_[static_cast<std::size_t>(part - totals_.begin())] - (*part - bytes) / rate_;
  }
  [[nodiscard]] const std::vector<double>& totals() const { return totals_; }

 private:
  struct Part {
    double available;
    double size;
  };
  double rate_;
  std::vector<Part> parts_;
  std::vector<double> totals_;  // bytes of the first parts together
  std::vector<double> ends_;    // when they have crossed
};

// How long it takes at least to compute some of the dropped bytes again, a task being divisible.
class RecomputationCurve {
 public:
  // A task makes all its blocks in one go.
  void add(Position task, double time, double size) {
    Part& part = by_task_[task];
    part.time = time;
    part.size += size;
  }

  void finish() {
    std::vector<Part> parts;
    for (const auto& [task, part] : by_task_) parts.push_back(part);
    std::ranges::stable_sort(parts, {}, [](const Part& part) { return part.time / part.size; });
    for (const Part& part : parts) {
      totals_.push_back(total() + part.size);
      times_.push_back((times_.empty() ? 0 : times_.back()) + part.time);
    }
  }

  [[nodiscard]] double total() const { return totals_.empty() ? 0 : totals_.back(); }
  [[nodiscard]] const std::vector<double>& totals() const { return totals_; }

  [[nodiscard]] double time(double bytes) const {
    if (bytes <= 0) return 0;
    const auto found = std::ranges::lower_bound(totals_, bytes);
    if (found == totals_.end()) return kNever;
    const auto i = static_cast<std::size_t>(found - totals_.begin());
    const double total_before = i == 0 ? 0 : totals_[i - 1];
    const double time_before = i == 0 ? 0 : times_[i - 1];
    return time_before +
           (times_[i] - time_before) * (bytes - total_before) / (totals_[i] - total_before);
  }

 private:
  struct Part {
    double time = 0;
    double size = 0;
  };
  std::map<Position, Part> by_task_;
  std::vector<double> totals_;
  std::vector<double> times_;
};

// The time between two uses of a block, in which it may be away.
struct Gap {
  Position last;
  Position next;
  double size;
  double available;               // when its content has been written, at the earliest
  double due;                     // the time from its next use to the end, at the least
  std::optional<Position> maker;  // the task to run again if it was dropped; empty: it may not be
};

class StepModel {
 public:
  explicit StepModel(const Problem& problem)
      : graph_{problem.graph},
        occupancy_{problem.graph, problem.page},
        link_{problem.profile.link},
        may_recompute_{problem.may_recompute} {
    std::vector<TaskRun> runs;
    before_.push_back(0);
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      runs.push_back({.task = TaskId(t)});  // the first algorithm needs the least workspace
      times_.push_back(um::seconds(*std::ranges::min_element(problem.profile.durations[t])));
      before_.push_back(before_.back() + times_.back());
    }
    const std::vector<Life> lives = find_lives(graph_, runs);
    const Bytes pool = occupancy_.pool(problem.budget);
    for (const Bytes needed : demand(graph_, occupancy_, runs, lives)) {
      missing_.push_back(to_double(um::saturating_difference(needed, pool)));
    }
    for (const Life& life : lives) add_gaps(life);
  }

  [[nodiscard]] double compute() const { return before_.back(); }

  [[nodiscard]] double beaumont() const {
    const double most = missing_.empty() ? 0 : *std::ranges::max_element(missing_);
    return std::max(compute(), most * (1 / out() + 1 / in()));
  }

  // For plans that only move: no task starts before its own head, nor before its predecessor has
  // ended; the mirror image for what follows it.
  [[nodiscard]] double head_and_tail() const {
    std::vector<double> tails(times_.size() + 1);
    std::vector<double> heads(times_.size());
    for (std::size_t t = 0; t < times_.size(); ++t) {
      if (missing_[t] <= 0) continue;
      const Curves curves = curves_at(Position(t), false);
      heads[t] = curves.head.time(missing_[t]);
      tails[t] = curves.tail.time(missing_[t]);
    }
    for (std::size_t t = times_.size(); t-- > 0;) {
      const double after = t + 1 < times_.size() ? times_[t + 1] + tails[t + 1] : 0;
      tails[t] = std::max(tails[t], after);
    }
    double bound = compute();
    double start = 0;
    for (std::size_t t = 0; t < times_.size(); ++t) {
      start = std::max(start, heads[t]);
      bound = std::max(bound, start + times_[t] + tails[t]);
      start += times_[t];
    }
    return bound;
  }

  // For plans that also recompute: the largest bound of one task, over every `stride`-th.
  [[nodiscard]] double head_and_tail_with_recomputation(std::size_t stride) const {
    double bound = compute();
    for (std::size_t t = 0; t < times_.size(); t += stride) {
      if (missing_[t] > 0) bound = std::max(bound, at(Position(t)));
    }
    return bound;
  }

 private:
  [[nodiscard]] double out() const { return link_.offload.bytes_per_second(); }
  [[nodiscard]] double in() const { return link_.prefetch.bytes_per_second(); }

  void add_gaps(const Life& life) {
    if (!occupancy_.is_movable(life.data)) return;
    double available = 0;
    bool is_recomputable = may_recompute_;
    Position maker = 0;
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      const BlockAccess& access = life.accesses[a];
      if (access.writes) {
        maker = access.position;
        available = before_[maker + 1];
        is_recomputable = is_recomputable && graph_.tasks[maker].is_recomputable;
      }
      const Position next = life.accesses[a + 1].position;
      if (next <= access.position + 1) continue;
      gaps_.push_back({.last = access.position,
                       .next = next,
                       .size = to_double(occupancy_.size(life.data)),
                       .available = available,
                       .due = compute() - before_[next],
                       .maker = is_recomputable ? std::optional{maker} : std::nullopt});
    }
  }

  struct Curves {
    TransferCurve head;
    TransferCurve tail;
    RecomputationCurve again;
  };

  // Of the blocks that may be away at task `t`.
  [[nodiscard]] Curves curves_at(Position t, bool with_recomputation) const {
    Curves curves{.head = TransferCurve{out()}, .tail = TransferCurve{in()}, .again = {}};
    for (const Gap& gap : gaps_) {
      if (gap.last >= t || gap.next <= t) continue;
      curves.head.add(gap.available, gap.size);
      curves.tail.add(gap.due, gap.size);
      if (with_recomputation && gap.maker) {
        curves.again.add(*gap.maker, times_[*gap.maker], gap.size);
      }
    }
    curves.head.finish();
    curves.tail.finish();
    curves.again.finish();
    return curves;
  }

  // The bound of one task: the cheapest division of what is missing at it.
  [[nodiscard]] double at(Position t) const {
    const auto [head, tail, again] = curves_at(t, true);
    const double missing = missing_[t];
    const double after = compute() - before_[t + 1];
    const auto bound = [&, &head = head, &tail = tail, &again = again](double moved) {
      return std::max(before_[t], head.time(moved)) + times_[t] +
             std::max(after + again.time(missing - moved), tail.time(moved));
    };
    double best = bound(missing);
    for (const double moved : divisions(t, head, tail, again)) best = std::min(best, bound(moved));
    return best;
  }

  // Moved bytes among which the cheapest division is: between two of them both curves of a maximum
  // are linear and none overtakes the other.
  [[nodiscard]] std::vector<double> divisions(Position t, const TransferCurve& head,
                                              const TransferCurve& tail,
                                              const RecomputationCurve& again) const {
    const double missing = missing_[t];
    const double after = compute() - before_[t + 1];
    const double least = std::max(0.0, missing - again.total());
    if (least >= missing) return {};
    std::vector<double> result{least};
    const auto add = [&](double moved) {
      if (moved > least && moved < missing) result.push_back(moved);
    };
    std::ranges::for_each(head.totals(), add);
    std::ranges::for_each(tail.totals(), add);
    for (const double total : again.totals()) add(missing - total);
    const auto add_crossing = [&](const auto& is_below) {
      double low = least;
      double high = missing;
      for (int i = 0; i < 64; ++i) {
        const double middle = low + (high - low) / 2;
        (is_below(middle) ? low : high) = middle;
      }
      add(low);
      add(high);
    };
    add_crossing([&](double moved) { return head.time(moved) <= before_[t]; });
    add_crossing(
        [&](double moved) { return tail.time(moved) <= after + again.time(missing - moved); });
    return result;
  }

  const TaskGraph& graph_;
  Occupancy occupancy_;
  LinkProfile link_;
  bool may_recompute_;
  std::vector<double> times_;    // by task, in seconds
  std::vector<double> before_;   // by task: the time of all tasks before it
  std::vector<double> missing_;  // by task: bytes that cannot be near while it runs
  std::vector<Gap> gaps_;
};

}  // namespace

Bounds lower_bounds(const Problem& problem) {
  constexpr std::size_t kMany = 2000;
  const StepModel step{problem};
  if (std::ranges::any_of(problem.graph.data, &DataBlock::is_offloadable)) {
    const um::Nanoseconds compute = at_least(step.compute());
    return {.beaumont = compute, .offload = compute, .mixed = compute};
  }
  Bounds bounds{.beaumont = at_least(step.beaumont()), .offload = at_least(step.head_and_tail())};
  bounds.mixed = bounds.offload;
  if (problem.may_recompute) {
    const std::size_t stride = problem.graph.tasks.size() > kMany ? 50 : 1;
    bounds.mixed = at_least(step.head_and_tail_with_recomputation(stride));
  }
  return bounds;
}

}  // namespace spillway::prefetch
