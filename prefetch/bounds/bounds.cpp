#include "prefetch/bounds/bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/any_order.h"
#include "prefetch/bounds/curves.h"
#include "prefetch/bounds/timed_intervals.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/liveness.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;

// Lower bounds of the time between two tasks that fill near memory, from the room of each beside
// its own operands and least workspace.
//
// **Incoming blocks.** Consider two tasks and the blocks that are idle during the first and next
// used by a later task, up to and including the second. During the first task, their near bytes
// are limited by its room. All others cross the link, or are recomputed, before the second task
// starts. Transfers take the link's time per byte. Recomputation takes processor time in addition
// to the tasks in between (RecomputationCurve): its inputs were near instead, come in, or are
// recomputed, too. Link and processor work concurrently, so the longer time counts, for the
// cheapest division. A block that was recomputed before or during the first task is near
// meanwhile, or crosses the link: this cannot beat the bound.
//
// **Outgoing blocks.** Consider blocks written since the first task began and needed after the
// second. During the second task, their near bytes are limited by its room. No block leaves before
// it is written, so the others leave in between. Blocks that may be discarded need not.
//
// The bounds of disjoint stretches of a step add up.
class TransitionBound {
 public:
  // `rooms`: by task, bytes of near memory beside its operands and least workspace. `times`: by
  // task. All arguments must outlive it. Complexity: O(tasks * kWindow * blocks of a window).
  TransitionBound(std::span<const TimedInterval> idle_intervals, std::span<const double> rooms,
                  std::span<const double> times, const LinkProfile& link, bool may_recompute);

  // The largest distance between two considered tasks: a block of layers of common networks.
  static constexpr Position kWindow = 32;

  // Returns the least time between the end of `first` and the start of `later`, which is at most
  // kWindow tasks after it. Never less than the tasks in between take.
  [[nodiscard]] double between(Position first, Position later) const {
    return least_[place(first, later)];
  }

 private:
  static std::size_t place(Position first, Position later) {
    return static_cast<std::size_t>(first) * kWindow + (later - first - 1);
  }
  void add_arrivals(Position first);
  void add_departures(Position later);
  [[nodiscard]] double arrival(std::span<const TimedInterval* const> coming, Position first,
                               double bytes, double computing) const;

  std::span<const double> rooms_;
  std::span<const double> times_;
  double out_;  // bytes per second
  double in_;   // bytes per second
  bool may_recompute_;
  std::vector<std::vector<const TimedInterval*>> by_next_;     // by task
  std::vector<std::vector<const TimedInterval*>> by_written_;  // by task
  std::vector<double> least_;                                  // by place()
};

TransitionBound::TransitionBound(std::span<const TimedInterval> idle_intervals,
                                 std::span<const double> rooms, std::span<const double> times,
                                 const LinkProfile& link, bool may_recompute)
    : rooms_{rooms},
      times_{times},
      out_{link.offload.bytes_per_second()},
      in_{link.prefetch.bytes_per_second()},
      may_recompute_{may_recompute},
      by_next_(times.size()),
      by_written_(times.size()),
      least_(times.size() * kWindow) {
  for (const TimedInterval& idle : idle_intervals) {
    if (!idle.to_end) by_next_[idle.next].push_back(&idle);
    if (idle.is_written) by_written_[idle.written].push_back(&idle);
  }
  const auto count = static_cast<Position>(times.size());
  for (Position t = 0; t < count; ++t) add_arrivals(t);
  for (Position t = 0; t < count; ++t) add_departures(t);
}

void TransitionBound::add_arrivals(Position first) {
  const auto count = static_cast<Position>(times_.size());
  std::vector<const TimedInterval*> coming;
  double bytes = -rooms_[first];
  double computing = 0;
  for (Position later = first + 1; later < count && later <= first + kWindow; ++later) {
    for (const TimedInterval* idle : by_next_[later]) {
      if (!idle->holds(first)) continue;
      bytes += idle->size;
      coming.push_back(idle);
    }
    double& least = least_[place(first, later)];
    least = computing;
    if (bytes > computing * in_) least = arrival(coming, first, bytes, computing);
    computing += times_[later];
  }
}

// Bounds the time for those of the blocks `coming` after `first` that have no room during it:
// `bytes`.
double TransitionBound::arrival(std::span<const TimedInterval* const> coming, Position first,
                                double bytes, double computing) const {
  RecomputationCurve again{times_};
  for (const TimedInterval* idle : coming) {
    if (!may_recompute_ || idle->producers.empty()) continue;
    again.add(idle->producers, idle->size);
    for (const RecomputeInput& recompute_input : idle->recompute_inputs) {
      // an input that is needed later is a block of its own
      if (recompute_input.last < first) again.add_recompute_input(recompute_input);
    }
  }
  again.finish();
  // The link moves some and the processor recomputes the others, concurrently: the longer time
  // counts.
  double low = 0;
  double high = std::min(bytes, again.total());
  for (int i = 0; i < 50; ++i) {
    const double made = low + (high - low) / 2;
    ((bytes - made) / in_ > computing + again.time(made) ? low : high) = made;
  }
  return std::max(computing, (bytes - high) / in_);
}

void TransitionBound::add_departures(Position later) {
  double bytes = -rooms_[later];
  const Position window = std::min(later, kWindow);
  for (Position first = later; first-- > later - window;) {
    for (const TimedInterval* idle : by_written_[first]) {
      if (!idle->holds(later)) continue;
      if (!may_recompute_ || idle->producers.empty()) bytes += idle->size;
    }
    double& least = least_[place(first, later)];
    least = std::max(least, bytes / out_);
  }
}

// Returns by exchange the time of the tasks that use its gradients afterwards.
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

// Rounds down by more than possible rounding errors: a bound must not be too high.
um::Nanoseconds at_least(double seconds) {
  return um::Nanoseconds{static_cast<std::int64_t>(seconds * (1 - 1e-12) * 1e9)};
}

class StepModel {
 public:
  explicit StepModel(const Problem& problem)
      : graph_{problem.graph},
        block_sizes_{problem.graph, problem.page},
        link_{problem.profile.link} {
    std::vector<TaskRun> runs;
    before_.push_back(0);
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      runs.push_back({.task = TaskId(t)});  // the first algorithm needs the least workspace
      times_.push_back(um::seconds(*std::ranges::min_element(problem.profile.durations[t])));
      before_.push_back(before_.back() + times_.back());
    }
    const std::vector<Life> lives = find_lives(graph_, runs);
    const um::Bytes pool = block_sizes_.pool(problem.budget);
    for (const um::Bytes needed : demand(graph_, block_sizes_, runs, lives)) {
      missing_.push_back(to_double(um::saturating_difference(needed, pool)));
    }
    for (const um::Bytes set : working_sets(graph_, block_sizes_, runs)) {
      rooms_.push_back(to_double(um::saturating_difference(pool, set)));
    }
    intervals_ = find_timed_intervals(graph_, block_sizes_, lives, before_, problem.may_recompute);
  }

  [[nodiscard]] double compute() const { return before_.back(); }

  [[nodiscard]] double beaumont() const {
    std::vector<double> leave_free(times_.size() + 1);  // by task: increase over the previous task
    std::vector<double> stay_far(times_.size() + 1);
    for (const TimedInterval& interval : intervals_) {
      const Position first = interval.from_start ? 0 : interval.last + 1;
      const auto add = [&](std::vector<double>& changes) {
        changes[first] += interval.size;
        changes[interval.next] -= interval.size;
      };
      if (interval.may_leave_free()) add(leave_free);
      if (interval.may_stay_far()) add(stay_far);
    }
    double longest = compute();
    double leaves = 0;
    double stays = 0;
    for (std::size_t t = 0; t < times_.size(); ++t) {
      leaves += leave_free[t];
      stays += stay_far[t];
      longest = std::max(longest, std::max(0.0, missing_[t] - leaves) / out() +
                                      std::max(0.0, missing_[t] - stays) / in());
    }
    return longest;
  }

  // A bound, without and with TransitionBound.
  struct Pair {
    double plain;
    double with_transition_bound;
  };

  // For plans that only move: no task starts before its own head, nor before its predecessor has
  // ended; symmetric for tails. With a TransitionBound, no task starts before that bound either.
  [[nodiscard]] Pair head_and_tail() const {
    Ends own{.starts = std::vector<double>(times_.size()),
             .tails = std::vector<double>(times_.size())};
    for (const Position t : by_missing()) {
      const Curves curves = curves_at(t, false);
      own.starts[t] = curves.head.time(missing_[t]);
      own.tails[t] = curves.tail.time(missing_[t]);
    }
    const auto bound = [&](const Ends& ends) {
      double longest = beaumont();
      for (std::size_t t = 0; t < times_.size(); ++t) {
        longest = std::max(longest, ends.starts[t] + times_[t] + ends.tails[t]);
      }
      return longest;
    };
    const TransitionBound transition_bound{intervals_, rooms_, times_, link_, false};
    return {.plain = bound(raised(own, nullptr)),
            .with_transition_bound = bound(raised(own, &transition_bound))};
  }

  // For plans that also recompute: the largest bound of one task; in long steps, of sampled tasks.
  [[nodiscard]] Pair head_and_tail_with_recomputation() const {
    const Ends none{.starts = std::vector<double>(times_.size()),
                    .tails = std::vector<double>(times_.size())};
    const TransitionBound transition_bound{intervals_, rooms_, times_, link_, true};
    const Ends plain = raised(none, nullptr);
    const Ends turned = raised(none, &transition_bound);
    Pair bound{.plain = compute(),
               .with_transition_bound = times_.empty() ? 0 : times_.front() + turned.tails.front()};
    for (const Position t : by_missing()) {
      const Curves curves = curves_at(t, true);
      bound.plain = at(t, curves, plain.starts[t], plain.tails[t], bound.plain);
      bound.with_transition_bound =
          at(t, curves, turned.starts[t], turned.tails[t], bound.with_transition_bound);
    }
    return bound;
  }

 private:
  [[nodiscard]] double out() const { return link_.offload.bytes_per_second(); }
  [[nodiscard]] double in() const { return link_.prefetch.bytes_per_second(); }

  // By task: lower bounds of the time before it starts and after it has ended.
  struct Ends {
    std::vector<double> starts;
    std::vector<double> tails;
  };

  // Raises the bounds of single tasks so that they are consistent with their neighbours.
  [[nodiscard]] Ends raised(Ends ends, const TransitionBound* transition_bound) const {
    raise_starts(transition_bound, ends.starts);
    raise_tails(transition_bound, ends.tails);
    return ends;
  }

  void raise_starts(const TransitionBound* transition_bound, std::vector<double>& starts) const {
    for (Position t = 1; t < starts.size(); ++t) {
      starts[t] = std::max(starts[t], starts[t - 1] + times_[t - 1]);
      if (transition_bound == nullptr) continue;
      for (Position first = t - std::min(t, TransitionBound::kWindow); first < t; ++first) {
        starts[t] = std::max(starts[t],
                             starts[first] + times_[first] + transition_bound->between(first, t));
      }
    }
  }

  void raise_tails(const TransitionBound* transition_bound, std::vector<double>& tails) const {
    const auto count = static_cast<Position>(tails.size());
    for (Position t = count; t-- > 0;) {
      if (t + 1 < count) tails[t] = std::max(tails[t], times_[t + 1] + tails[t + 1]);
      if (transition_bound == nullptr) continue;
      for (Position later = t + 1; later < count && later <= t + TransitionBound::kWindow;
           ++later) {
        tails[t] =
            std::max(tails[t], transition_bound->between(t, later) + times_[later] + tails[later]);
      }
    }
  }

  struct Curves {
    TransferCurve head;
    TransferCurve tail;
    RecomputationCurve again;
  };

  // Returns the tasks with missing bytes (a sample of a long step), in order of decreasing missing
  // bytes. The first ones have high bounds, which quickly rule out the others.
  [[nodiscard]] std::vector<Position> by_missing() const {
    constexpr std::size_t kMany = 2000;
    constexpr std::size_t kMost = 400;  // for still longer steps
    const std::size_t stride =
        times_.size() > kMany ? std::max<std::size_t>(50, times_.size() / kMost) : 1;
    std::vector<Position> order;
    for (std::size_t t = 0; t < times_.size(); t += stride) {
      if (missing_[t] > 0) order.push_back(Position(t));
    }
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](Position t) { return missing_[t]; });
    return order;
  }

  // Returns curves over the blocks that may be away at task `t`.
  [[nodiscard]] Curves curves_at(Position t, bool with_recomputation) const {
    Curves curves{.head = TransferCurve{out()},
                  .tail = TransferCurve{in()},
                  .again = RecomputationCurve{times_}};
    for (const TimedInterval& interval : intervals_) {
      if (!interval.holds(t)) continue;
      if (interval.may_stay_far()) {
        curves.tail.add_free(interval.size);
      } else {
        curves.tail.add(interval.due, interval.size);
      }
      if (interval.may_leave_free()) {
        curves.head.add_free(interval.size);
        continue;
      }
      double available = interval.available;
      if (with_recomputation && !interval.producers.empty()) {
        curves.again.add(interval.producers, interval.size);
        for (const RecomputeInput& recompute_input : interval.recompute_inputs) {
          if (recompute_input.last >= t) continue;  // counts as a block of its own
          curves.again.add_recompute_input(recompute_input);
          available = std::min(available, recompute_input.available);  // may be moved instead
        }
      }
      curves.head.add(available, interval.size);
    }
    curves.head.finish();
    curves.tail.finish();
    curves.again.finish();
    return curves;
  }

  // Returns the bound of one task: the minimum over the divisions of its missing bytes, or `min` if
  // that is larger. At least `start` passes before the task, at least `end` after it.
  [[nodiscard]] double at(Position t, const Curves& curves, double start, double end,
                          double min) const {
    const double missing = missing_[t];
    const double after = compute() - before_[t + 1];
    const auto bound = [&](double moved) {
      return std::max(start, curves.head.time(moved)) + times_[t] +
             std::max({end, after + curves.again.time(missing - moved), curves.tail.time(moved)});
    };
    double best = bound(missing);
    for (const double moved : divisions(t, start, end, curves.head, curves.tail, curves.again)) {
      if (best <= min) return min;
      best = std::min(best, bound(moved));
    }
    return std::max(best, min);
  }

  // Returns candidates for the moved bytes of the cheapest division, likely ones first. Between two
  // candidates, both curves of a maximum are linear and do not cross.
  [[nodiscard]] std::vector<double> divisions(Position t, double start, double end,
                                              const TransferCurve& head, const TransferCurve& tail,
                                              const RecomputationCurve& again) const {
    const double missing = missing_[t];
    const double after = compute() - before_[t + 1];
    const double min = std::max(0.0, missing - again.total());
    if (min >= missing) return {};
    std::vector<double> result{min};
    const auto add = [&](double moved) {
      if (moved > min && moved < missing) result.push_back(moved);
    };
    const auto add_crossing = [&](const auto& is_below) {
      double low = min;
      double high = missing;
      for (int i = 0; i < 64; ++i) {
        const double middle = low + (high - low) / 2;
        (is_below(middle) ? low : high) = middle;
      }
      for (const double moved : {low, high}) add(moved);
    };
    add_crossing([&](double moved) { return head.time(moved) <= start; });
    add_crossing(
        [&](double moved) { return tail.time(moved) <= after + again.time(missing - moved); });
    add_crossing([&](double moved) { return tail.time(moved) <= end; });
    add_crossing([&](double moved) { return after + again.time(missing - moved) >= end; });
    for (const auto* const curve : {&head, &tail}) std::ranges::for_each(curve->totals(), add);
    for (const double total : again.totals()) add(missing - total);
    return result;
  }

  const TaskGraph& graph_;
  BlockSizes block_sizes_;
  LinkProfile link_;
  std::vector<double> times_;    // by task, in seconds
  std::vector<double> before_;   // by task: the time of all tasks before it
  std::vector<double> missing_;  // by task: bytes that cannot be near while it runs
  std::vector<TimedInterval> intervals_;
  std::vector<double> rooms_;  // by task: near bytes beside its operands and workspace
};

}  // namespace

Nanoseconds exchange_bound(const TaskGraph& graph, const Profile& profile) {
  if (graph.exchanges.empty()) return Nanoseconds{0};
  std::vector<Nanoseconds> times;
  std::vector<Nanoseconds> ended{Nanoseconds{0}};  // by k: when the first k tasks have ended
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

Bounds lower_bounds(const Problem& problem) {
  const StepModel step{problem};
  const StepModel::Pair moving = step.head_and_tail();
  const StepModel::Pair mixed =
      problem.may_recompute ? step.head_and_tail_with_recomputation() : moving;
  const um::Nanoseconds exchanged = exchange_bound(problem.graph, problem.profile);
  return {.beaumont = at_least(step.beaumont()),
          .offload = at_least(moving.plain),
          .mixed = at_least(mixed.plain),
          .offload_transition = std::max(exchanged, at_least(moving.with_transition_bound)),
          .mixed_transition = std::max(exchanged, at_least(mixed.with_transition_bound)),
          .any_order = any_order_bound(problem)};
}

um::Nanoseconds mixed_transition_bound(const Problem& problem) {
  if (!problem.may_recompute) return lower_bounds(problem).mixed_transition;
  const StepModel step{problem};
  return std::max(exchange_bound(problem.graph, problem.profile),
                  at_least(step.head_and_tail_with_recomputation().with_transition_bound));
}

nlohmann::json to_json(const Bounds& bounds) {
  return {{"beaumont", um::seconds(bounds.beaumont)},
          {"offload", um::seconds(bounds.offload)},
          {"mixed", um::seconds(bounds.mixed)},
          {"offload_turnover", um::seconds(bounds.offload_transition)},
          {"mixed_turnover", um::seconds(bounds.mixed_transition)},
          {"any_order", um::seconds(bounds.any_order)}};
}

}  // namespace spillway::prefetch
