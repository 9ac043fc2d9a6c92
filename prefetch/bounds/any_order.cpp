#include "prefetch/bounds/any_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/curves.h"
#include "prefetch/liveness.h"
#include "prefetch/precedence.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {
namespace {

using TaskNumbers = std::vector<Position>;  // numbers of tasks

// A content of a movable block, in the graph's order.
struct HeldContent {
  TaskNumbers
      writers;  // those that make it, from the overwriting one on; none: older than the step
  TaskNumbers readers;
};

class AnyOrderModel {
 public:
  explicit AnyOrderModel(const Problem& problem)
      : problem_{problem},
        graph_{problem.graph},
        block_sizes_{problem.graph, problem.page},
        before_(graph_.tasks.size()),
        after_(graph_.tasks.size()) {
    for (const auto& durations : problem.profile.durations) {
      times_.push_back(um::seconds(*std::ranges::min_element(durations)));
      all_ += times_.back();
    }
    const Precedence precedence{graph_, problem.page};
    for (Position t = 0; t < graph_.tasks.size(); ++t) {
      for (const TaskId source : precedence.sources(TaskId{t})) {
        before_[t].push_back(static_cast<Position>(source));
        after_[static_cast<std::size_t>(source)].push_back(t);
      }
    }
    find_versions();
    find_starts();
  }

  [[nodiscard]] double bound() const {
    double longest = all_;
    std::vector<TaskRun> runs = runs_in_order(graph_);
    const std::vector<um::Bytes> sets = working_sets(graph_, block_sizes_, runs);
    const double pool = to_double(block_sizes_.pool(problem_.budget));
    for (Position t = 0; t < times_.size(); t += stride()) {
      longest = std::max(longest, at(t, pool - to_double(sets[t])));
    }
    return longest;
  }

 private:
  static constexpr std::size_t kMany = 2000;

  [[nodiscard]] Position stride() const {
    constexpr std::size_t kWork = 2'000'000;  // tasks visited in all
    const std::size_t count = times_.size();
    if (count <= kMany) return 1;
    return static_cast<Position>(count / std::min(count, std::max<std::size_t>(20, kWork / count)));
  }

  void find_versions() {
    versions_.resize(graph_.data.size());
    for (std::size_t i = 0; i < versions_.size(); ++i) {
      if (graph_.data[i].kind == DataKind::kState) versions_[i].emplace_back();
    }
    for (Position t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      for (const DataId id : task.reads) of(id).back().readers.push_back(t);
      for (const DataId id : task.writes) {
        HeldContent made;
        if (std::ranges::count(task.reads, id) > 0) made.writers = of(id).back().writers;
        made.writers.push_back(t);
        of(id).push_back(std::move(made));
      }
    }
  }
  std::vector<HeldContent>& of(DataId id) { return versions_[static_cast<std::size_t>(id)]; }

  // The least time before and after the first run of each task: that of all tasks that surely come
  // before and after it, or in long steps of the longest path.
  void find_starts() {
    const std::size_t count = times_.size();
    starts_.assign(count, 0);
    tails_.assign(count, 0);
    for (Position t = 0; t < count; ++t) {
      for (const Position source : before_[t]) {
        starts_[t] = std::max(starts_[t], starts_[source] + times_[source]);
      }
    }
    for (auto t = static_cast<Position>(count); t-- > 0;) {
      for (const Position user : after_[t]) {
        tails_[t] = std::max(tails_[t], times_[user] + tails_[user]);
      }
    }
    if (count > kMany) return;
    for (Position t = 0; t < count; ++t) {
      starts_[t] = time_of(reached(t, before_)) - times_[t];
      tails_[t] = time_of(reached(t, after_)) - times_[t];
    }
  }

  // Returns by task whether it is `t` or is reached from it.
  [[nodiscard]] static std::vector<bool> reached(Position t,
                                                 const std::vector<TaskNumbers>& edges) {
    std::vector<bool> found(edges.size(), false);
    TaskNumbers open{t};
    found[t] = true;
    while (!open.empty()) {
      const Position task = open.back();
      open.pop_back();
      for (const Position next : edges[task]) {
        if (found[next]) continue;
        found[next] = true;
        open.push_back(next);
      }
    }
    return found;
  }
  [[nodiscard]] double time_of(const std::vector<bool>& tasks) const {
    double sum = 0;
    for (std::size_t t = 0; t < tasks.size(); ++t) sum += tasks[t] ? times_[t] : 0;
    return sum;
  }

  struct Curves {
    TransferCurve head;
    TransferCurve tail;
    RecomputationCurve again;
    double live = 0;  // bytes in the curves
  };

  // Adds the block to the curves if it is surely live while `t` runs, which comes after all tasks
  // of `earlier` and before those of `later`.
  void add(const std::vector<HeldContent>& versions, const DataBlock& block, double size,
           const std::vector<bool>& earlier, const std::vector<bool>& later, Curves& curves) const {
    const bool is_state = block.kind == DataKind::kState;
    for (std::size_t v = versions.size(); v-- > 0;) {
      const HeldContent& version = versions[v];
      double available = 0;
      double due = 0;
      bool is_made = false;
      bool is_used = false;
      if (!version.writers.empty() && earlier[version.writers.back()]) {
        is_made = true;
        available = starts_[version.writers.back()] + times_[version.writers.back()];
      }
      for (const Position reader : version.readers) {
        if (!later[reader]) continue;
        is_used = true;
        due = std::max(due, times_[reader] + tails_[reader]);
      }
      if (!is_state && !(is_made && is_used)) continue;
      if (is_state && !is_made && (block.is_sent || v > 0)) continue;
      curves.live += size;
      is_made ? curves.head.add(available, size) : curves.head.add_free(size);
      is_used ? curves.tail.add(due, size) : curves.tail.add_free(size);
      const auto may_rerun = [&](Position writer) { return graph_.tasks[writer].is_recomputable; };
      if (!is_state && problem_.may_recompute && std::ranges::all_of(version.writers, may_rerun)) {
        curves.again.add(version.writers, size);
      }
      return;
    }
  }

  // Returns the bound of the first run of `t`, with `room` beside its operands and workspace.
  [[nodiscard]] double at(Position t, double room) const {
    const std::vector<bool> earlier = reached(t, before_);
    const std::vector<bool> later = reached(t, after_);
    Curves curves{.head = TransferCurve{problem_.profile.link.offload.bytes_per_second()},
                  .tail = TransferCurve{problem_.profile.link.prefetch.bytes_per_second()},
                  .again = RecomputationCurve{times_}};
    const std::vector<DataId> own = operands(graph_.tasks[t]);
    for (std::size_t i = 0; i < versions_.size(); ++i) {
      const double size = to_double(block_sizes_.size(DataId(i)));
      if (size <= 0 || std::ranges::binary_search(own, DataId(i))) continue;
      add(versions_[i], graph_.data[i], size, earlier, later, curves);
    }
    if (curves.live <= room) return all_;
    curves.head.finish();
    curves.tail.finish();
    curves.again.finish();
    return cheapest(t, curves, curves.live - room);
  }

  // Returns the least time over all divisions of the `missing` bytes of `t`. Each interval of the
  // number of moved bytes counts with the moves of its begin and the recomputation of its end.
  [[nodiscard]] double cheapest(Position t, const Curves& curves, double missing) const {
    constexpr int kIntervals = 64;
    double best = kInfinite;
    for (int i = 0; i <= kIntervals; ++i) {
      const double begin = missing * i / kIntervals;
      const double end = i == kIntervals ? missing : missing * (i + 1) / kIntervals;
      if (!problem_.may_move && begin > 0) break;
      const double again = curves.again.time(missing - end);
      const double start = std::max(starts_[t], curves.head.time(begin));
      const double rest = std::max(tails_[t] + again, curves.tail.time(begin));
      best = std::min(best, std::max(all_ + again, start + times_[t] + rest));
    }
    return best == kInfinite ? all_ : best;
  }

  const Problem& problem_;
  const TaskGraph& graph_;
  BlockSizes block_sizes_;
  std::vector<double> times_;                       // by task, in seconds
  double all_ = 0;                                  // of all tasks
  std::vector<TaskNumbers> before_;                 // by task: makers of its inputs
  std::vector<TaskNumbers> after_;                  // by task: readers of its outputs
  std::vector<double> starts_;                      // by task: the least time before its first run
  std::vector<double> tails_;                       // by task: the least time after its first run
  std::vector<std::vector<HeldContent>> versions_;  // by block, in the graph's order
};

}  // namespace

um::Nanoseconds any_order_bound(const Problem& problem) {
  // Rounds down by more than possible rounding errors, as all bounds.
  const double seconds = AnyOrderModel{problem}.bound();
  return um::Nanoseconds{static_cast<std::int64_t>(seconds * (1 - 1e-9) * 1e9)};
}

}  // namespace spillway::prefetch
