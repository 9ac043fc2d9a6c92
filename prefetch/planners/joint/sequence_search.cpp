#include "prefetch/planners/joint/sequence_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "prefetch/planners/joint/run_sequence.h"

namespace spillway::prefetch {
namespace {

// Marsaglia's xorshift generator: the same numbers on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_{0x9E3779B97F4A7C15 * (seed + 1)} {
    if (state_ == 0) state_ = 1;
  }
  std::uint64_t operator()() {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return state_;
  }
  // Returns a number below `count`.
  std::uint32_t below(std::uint64_t count) {
    return static_cast<std::uint32_t>(((*this)() >> 32U) * count >> 32U);
  }
  double real() { return static_cast<double>((*this)() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

class SequenceSearch {
 public:
  SequenceSearch(const ValueGraph& graph, const SequenceGoal& goal, std::uint64_t seed)
      : graph_{graph}, goal_{goal}, sequence_{graph}, dice_{seed} {
    sequence_.set_pool(goal.pool);
    double bytes = 0;
    for (const Value& value : graph.values) bytes += static_cast<double>(value.bytes);
    value_size_ =
        std::max(1.0, bytes / static_cast<double>(std::max<std::size_t>(1, graph.values.size())));
    once_ = sequence_.seconds();
    mean_ = std::max(1e-12, once_ / static_cast<double>(std::max<std::size_t>(1, graph.count())));
    most_runs_ = 4 * graph.count() + 64;
  }

  std::optional<std::vector<TaskRun>> search(std::size_t changes) {
    constexpr double kHot = 1;
    constexpr double kCold = 0.01;
    constexpr std::size_t kRound = 256;
    double cost = cost_now();
    note_if_best();
    double temperature = kHot;
    const double cooling =
        std::pow(kCold / kHot, static_cast<double>(kRound) / static_cast<double>(changes + 1));
    std::size_t fitting = 0;
    for (std::size_t i = 1; i <= changes && graph_.count() > 1; ++i) {
      if (change()) {
        sequence_.settle();
        const double changed = cost_now();
        if (changed <= cost || dice_.real() < std::exp((cost - changed) / temperature)) {
          cost = changed;
          sequence_.commit();
          note_if_best();
        } else {
          sequence_.undo();
          sequence_.settle();
        }
      }
      fitting += sequence_.excess() == 0 ? 1 : 0;
      if (i % kRound != 0) continue;
      temperature *= cooling;
      if (!is_fluid()) {
        adapt(static_cast<double>(fitting) / kRound);
        cost = cost_now();
      }
      fitting = 0;
    }
    return std::move(best_);
  }

 private:
  using Run = RunSequence::Run;
  using Place = RunSequence::Place;
  using Number = RunSequence::Number;

  [[nodiscard]] bool is_fluid() const { return goal_.out > 0; }

  // Keeps the search near sequences that fit by the price of what exceeds the pool.
  void adapt(double fitting) {
    if (fitting < 0.2) price_ *= 1.01;
    if (fitting > 0.5) price_ *= 0.99;
    price_ = std::clamp(price_, 0.05, 2000.0);
  }

  double cost_now() {
    if (is_fluid()) {
      fluid_ = fluid_makespan();
      return (fluid_ - once_) / mean_ + kDisplaced * displaced_;
    }
    return (sequence_.seconds() - once_) / mean_ +
           price_ * static_cast<double>(sequence_.excess()) / value_size_;
  }

  // Returns the time of all runs and of their waits for the link: until what exceeds the pool has
  // left, and, seen from the end, until it has come back. Counts runs that overtake earlier tasks.
  double fluid_makespan() {
    const auto waits = [&](double rate, auto&& run_at) {
      double time = 0;
      double link = 0;
      double computed = 0;
      std::int64_t away = 0;
      for (Place i = 0; i < sequence_.size(); ++i) {
        const Place p = run_at(i);
        const std::int64_t excess = std::max<std::int64_t>(0, sequence_.live(p) - goal_.pool);
        if (excess > away) {
          link += static_cast<double>(excess - away) / rate;
          time = std::max(time, link);
        }
        away = excess;
        const double seconds = graph_.seconds[sequence_.task(sequence_.at(p))];
        time += seconds;
        computed += seconds;
      }
      return time - computed;
    };
    displaced_ = 0;
    for (Place p = 1; p < sequence_.size(); ++p) {
      displaced_ += sequence_.task(sequence_.at(p)) < sequence_.task(sequence_.at(p - 1)) ? 1 : 0;
    }
    return sequence_.seconds() + waits(goal_.out, [](Place i) { return i; }) +
           waits(goal_.in, [&](Place i) { return sequence_.size() - 1 - i; });
  }

  void note_if_best() {
    if (!is_fluid() && sequence_.excess() > 0) return;
    const double seconds = is_fluid() ? fluid_ : sequence_.seconds();
    if (seconds >= best_seconds_ - 1e-9 * mean_) return;
    best_seconds_ = seconds;
    best_ = sequence_.runs();
  }

  // Makes a random change; returns false if that was none.
  bool change() {
    const double drawn = dice_.real();
    if (!goal_.may_recompute) return drawn < 0.8 ? shift_one() : shift_group();
    if (drawn < 0.45) return shift_one();
    if (drawn < 0.55) return shift_group();
    if (drawn < 0.78) return insert_run();
    if (drawn < 0.92) return remove_run();
    const bool has_removed = remove_run();
    return insert_run() || has_removed;
  }

  Run any_run() { return sequence_.at(dice_.below(sequence_.size())); }

  bool shift_one() {
    const Run run = any_run();
    if (sequence_.task(run) < graph_.loads) return false;
    const RunSequence::Window window = sequence_.window(run);
    if (window.last <= window.first) return false;
    const double drawn = dice_.real();
    Place to = window.first;
    if (dice_.real() < 0.1) {
      if (drawn < 0.5) to = window.last;
    } else {
      const Place reach = drawn < 0.4 ? 8 : drawn < 0.7 ? 60 : sequence_.size();
      const Place now = sequence_.place(run);
      const Place first = std::max(window.first, now - std::min(now, reach));
      const Place last = std::min(window.last, now + reach);
      to = first + dice_.below(last - first + 1);
    }
    if (to == sequence_.place(run)) return false;
    sequence_.shift(run, to);
    return true;
  }

  // Shifts two to eight neighbours in one direction, each as far as its window allows.
  bool shift_group() {
    constexpr std::uint32_t kMost = 8;
    const Place count = std::min(2 + dice_.below(kMost - 1), sequence_.size());
    const Place begin = dice_.below(sequence_.size() - count + 1);
    const Place distance = 1 + dice_.below(dice_.below(2) == 0 ? 12 : 120);
    const bool is_later = dice_.below(2) == 0;
    std::array<Run, kMost> group{};
    for (Place i = 0; i < count; ++i) {
      group[i] = sequence_.at(is_later ? begin + count - 1 - i : begin + i);
    }
    bool has_changed = false;
    for (Place i = 0; i < count; ++i) {
      if (sequence_.task(group[i]) < graph_.loads) continue;
      const RunSequence::Window window = sequence_.window(group[i]);
      const Place now = sequence_.place(group[i]);
      const Place to = is_later ? std::min(window.last, now + distance)
                                : std::max(window.first, now - std::min(now, distance));
      if (to == now || (is_later ? to < now : to > now)) continue;
      sequence_.shift(group[i], to);
      has_changed = true;
    }
    return has_changed;
  }

  // Returns a place that exceeds the pool, the next after a random one; size() if there is none.
  Place any_place_over() {
    const Place start = dice_.below(sequence_.size());
    for (Place i = 0; i < sequence_.size(); ++i) {
      const Place p = start + i < sequence_.size() ? start + i : start + i - sequence_.size();
      if (sequence_.live(p) > goal_.pool) return p;
    }
    return sequence_.size();
  }

  // Inserts a run of a task with a value that is live but unused at a place that exceeds the pool,
  // or before any reader.
  bool insert_run() {
    if (sequence_.size() >= most_runs_) return false;
    const Place over = dice_.real() < 0.7 ? any_place_over() : sequence_.size();
    return over < sequence_.size() ? insert_across(over) : insert_anywhere();
  }

  bool insert_across(Place over) {
    constexpr int kTries = 16;
    for (int i = 0; i < kTries && over > 0; ++i) {
      const Run run = sequence_.at(dice_.below(over));
      const Number task = sequence_.task(run);
      if (!graph_.may_rerun[task] || graph_.outputs[task] == 0) continue;
      const Number count = graph_.first_value[task + 1] - graph_.first_value[task];
      const Number value = graph_.first_value[task] + dice_.below(count);
      if (sequence_.place(sequence_.last_reader(run, value)) <= over) continue;
      if (sequence_.reads(sequence_.at(over), value)) continue;
      const Place next = sequence_.next_reader(run, value, over);
      if (next >= sequence_.size()) continue;
      const Place to = dice_.real() < 0.7 ? next : over + 1 + dice_.below(next - over);
      return insert_with_inputs(task, to);
    }
    return false;
  }

  bool insert_anywhere() {
    const Run reader = any_run();
    const std::vector<Number>& inputs = graph_.inputs[sequence_.task(reader)];
    if (inputs.empty()) return false;
    const Number task = graph_.values[inputs[dice_.below(inputs.size())]].producer;
    if (!graph_.may_rerun[task]) return false;
    return insert_with_inputs(task, sequence_.place(reader));
  }

  bool insert_with_inputs(Number task, Place place) {
    if (!sequence_.may_insert(task, place)) return false;
    if (dice_.below(2) == 0) {
      sequence_.insert(task, place);
      return true;
    }
    again_ = dice_.real();
    left_ = 24;
    insert_closure(task, place, 12);
    return true;
  }

  // Inserts a run before `place`, and before it, at random, runs for inputs that have ended.
  // Returns the number of runs.
  Place insert_closure(Number task, Place place, int depth) {
    Place count = 0;
    --left_;
    for (const Number value : graph_.inputs[task]) {
      const Number producer = graph_.values[value].producer;
      if (depth == 0 || left_ <= 0 || !sequence_.may_insert(producer, place + count)) continue;
      const Run run = sequence_.run_before(producer, place + count);
      const bool has_ended = sequence_.place(sequence_.last_reader(run, value)) < place;
      if (!has_ended || sequence_.place(run) >= place || dice_.real() >= again_) continue;
      count += insert_closure(producer, place + count, depth - 1);
    }
    sequence_.insert(task, place + count);
    return count + 1;
  }

  // Removes a run that is not the first of its task, and mostly those that fed it alone.
  bool remove_run() {
    if (sequence_.reruns().empty()) return false;
    remove_chain(sequence_.reruns()[dice_.below(sequence_.reruns().size())]);
    return true;
  }

  void remove_chain(Run removed) {
    std::vector<Run> open{removed};
    while (!open.empty()) {
      const Run run = open.back();
      open.pop_back();
      const Number task = sequence_.task(run);
      std::vector<Run> feeding;
      for (const Number value : graph_.inputs[task]) {
        feeding.push_back(
            sequence_.run_before(graph_.values[value].producer, sequence_.place(run)));
      }
      sequence_.remove(run);
      for (const Run each : feeding) {
        if (sequence_.is_first(each) || std::ranges::count(open, each) > 0) continue;
        if (!feeds_nobody(each) || dice_.real() >= 0.7) continue;
        open.push_back(each);
      }
    }
  }

  [[nodiscard]] bool feeds_nobody(Run run) const {
    const Number task = sequence_.task(run);
    for (Number v = graph_.first_value[task]; v < graph_.first_value[task + 1]; ++v) {
      if (sequence_.last_reader(run, v) != run) return false;
    }
    return true;
  }

  static constexpr double kDisplaced = 1e-3;  // mean durations

  const ValueGraph& graph_;
  SequenceGoal goal_;
  RunSequence sequence_;
  Dice dice_;
  double value_size_ = 1;
  double once_ = 0;       // seconds of all tasks
  double mean_ = 1;       // seconds of a task
  double price_ = 1;      // of a value's excess at one place, in mean durations
  double fluid_ = 0;      // makespan of the sequence
  double displaced_ = 0;  // its runs that overtake an earlier task
  double again_ = 0;      // probability of running an input again
  int left_ = 0;          // runs that a closure may still insert
  std::size_t most_runs_ = 0;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  std::optional<std::vector<TaskRun>> best_;
};

}  // namespace

std::optional<std::vector<TaskRun>> search_sequence(const ValueGraph& graph,
                                                    const SequenceGoal& goal,
                                                    const SequenceLimits& limits) {
  return SequenceSearch{graph, goal, limits.seed}.search(limits.changes);
}

}  // namespace spillway::prefetch
