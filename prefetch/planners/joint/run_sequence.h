#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/planners/joint/value_graph.h"

namespace spillway::prefetch {

/// A sequence of runs of all tasks of a ValueGraph, which it keeps right, with the bytes that are
/// live at each of its places. A task has one or more runs; its first run always remains.
///
/// Changes are logged, and undone from the last one back. Live bytes are those of the sequence
/// after settle(), which sums them up where they changed. Complexity of a change: O(runs +
/// consumers of the values that the run reads and makes), of small constants.
class RunSequence {
 public:
  using Run = std::uint32_t;     ///< an identity of a run, as long as it is in the sequence
  using Place = std::uint32_t;   ///< a position in the sequence
  using Number = std::uint32_t;  ///< of a task, or of a value

  /// Begins with every task once, in the graph's order. `graph` must outlive it.
  explicit RunSequence(const ValueGraph& graph);

  [[nodiscard]] Place size() const { return static_cast<Place>(order_.size()); }
  [[nodiscard]] Run at(Place place) const { return order_[place]; }
  [[nodiscard]] Number task(Run run) const { return task_[run]; }
  [[nodiscard]] Place place(Run run) const { return place_[run]; }
  [[nodiscard]] bool is_first(Run run) const { return runs_of_[task_[run]].front() == run; }
  /// Returns the runs that are not the first of their tasks.
  [[nodiscard]] const std::vector<Run>& reruns() const { return reruns_; }
  /// Returns the last run that reads the value which `run` made; itself if none does.
  [[nodiscard]] Run last_reader(Run run, Number value) const {
    return last_[run][value - graph_.first_value[task_[run]]];
  }
  /// Returns the last run of `task` before `place`. Requires: there is one.
  [[nodiscard]] Run run_before(Number task, Place place) const;
  /// Returns the first place after `after` at which the value made by `run` is read; size() if
  /// none.
  [[nodiscard]] Place next_reader(Run run, Number value, Place after) const;
  [[nodiscard]] bool reads(Run run, Number value) const;

  /// Returns the sum of the seconds of all runs.
  [[nodiscard]] double seconds() const { return seconds_; }
  /// Returns the bytes during the run at `place`: live values and its workspace.
  [[nodiscard]] std::int64_t live(Place place) const { return live_[place]; }
  /// Returns the sum over all places of the bytes above `pool`. Requires: settled.
  [[nodiscard]] std::int64_t excess() const { return excess_; }

  /// The places to which a run may move, both included.
  struct Window {
    Place first;
    Place last;
  };
  [[nodiscard]] Window window(Run run) const;
  /// Returns true when `task`, which may rerun, finds its inputs' contents at `place`.
  [[nodiscard]] bool may_insert(Number task, Place place) const;

  /// Moves a run to a place in its window.
  void shift(Run run, Place to);
  /// Requires: may_insert().
  Run insert(Number task, Place place);
  /// Requires: not the first run of its task.
  void remove(Run run);

  /// Counts bytes above `pool` from now on.
  void set_pool(std::int64_t pool);
  /// Sums up live bytes where they changed.
  void settle();
  /// Keeps the changes since the last commit() or undo().
  void commit() { log_.clear(); }
  void undo();

  [[nodiscard]] std::vector<TaskRun> runs() const;

 private:
  enum class Change : std::uint8_t { kShift, kInsert, kRemove };
  struct Entry {
    Change change;
    Place place;  // of the change, for a shift where the run is now
    Place from;   // of a shift
    Number task;  // of what was removed
  };

  void touch(Place first, Place last);
  void number_from(Place first, Place last);
  void refresh(Run run, Number value);
  void refresh_outputs(Run run);
  void refresh_inputs(Number task, Place place);
  void move(Run run, Place to);
  Run add(Number task, Place place);
  void take_out(Run run);
  [[nodiscard]] Place end_of(Run run) const;

  const ValueGraph& graph_;
  std::vector<Run> order_;                 // by place
  std::vector<std::int64_t> live_;         // by place
  std::vector<std::int64_t> after_;        // by place: live bytes after its run
  std::vector<Number> task_;               // by run
  std::vector<Place> place_;               // by run
  std::vector<std::int64_t> freed_;        // by run: bytes of the values that it reads last
  std::vector<std::vector<Run>> last_;     // by run and value that it makes
  std::vector<std::vector<Run>> runs_of_;  // by task, in order
  std::vector<Run> reruns_;
  std::vector<std::uint32_t> rerun_index_;  // by run
  std::vector<Run> unused_;
  std::vector<Entry> log_;
  std::int64_t pool_ = 0;
  std::int64_t excess_ = 0;
  double seconds_ = 0;
  Place dirty_first_ = 0;  // settled: after dirty_last_
  Place dirty_last_ = 0;
  bool is_dirty_ = false;
};

}  // namespace spillway::prefetch
