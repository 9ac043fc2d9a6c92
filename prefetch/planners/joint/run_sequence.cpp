#include "prefetch/planners/joint/run_sequence.h"

#include <algorithm>

namespace spillway::prefetch {

RunSequence::RunSequence(const ValueGraph& graph) : graph_{graph}, pool_{graph.pool} {
  const auto count = static_cast<Place>(graph.count());
  runs_of_.resize(count);
  for (Number t = 0; t < count; ++t) {
    order_.push_back(t);
    task_.push_back(t);
    place_.push_back(t);
    runs_of_[t].push_back(t);
    seconds_ += graph.seconds[t];
    last_.emplace_back(graph.first_value[t + 1] - graph.first_value[t], t);
    freed_.push_back(graph.outputs[t]);
  }
  rerun_index_.resize(count);
  live_.resize(count);
  after_.resize(count);
  for (Run run = 0; run < count; ++run) refresh_outputs(run);
  if (count == 0) return;
  touch(0, count - 1);
  settle();
}

RunSequence::Run RunSequence::run_before(Number task, Place place) const {
  const std::vector<Run>& runs = runs_of_[task];
  std::size_t i = runs.size() - 1;
  while (i > 0 && place_[runs[i]] >= place) --i;
  return runs[i];
}

RunSequence::Place RunSequence::end_of(Run run) const {
  const std::vector<Run>& runs = runs_of_[task_[run]];
  if (runs.back() == run) return size();
  return place_[*(std::ranges::find(runs, run) + 1)];
}

RunSequence::Place RunSequence::next_reader(Run run, Number value, Place after) const {
  const Place end = end_of(run);
  Place next = size();
  for (const Number consumer : graph_.values[value].consumers) {
    for (const Run reader : runs_of_[consumer]) {
      if (place_[reader] <= after) continue;
      if (place_[reader] < end) next = std::min(next, place_[reader]);
      break;
    }
  }
  return next;
}

bool RunSequence::reads(Run run, Number value) const {
  return std::ranges::count(graph_.inputs[task_[run]], value) > 0;
}

RunSequence::Window RunSequence::window(Run run) const {
  const Number task = task_[run];
  auto first = static_cast<Place>(graph_.loads);
  Place end = size();
  for (const Number source : graph_.sources[task]) {
    first = std::max(first, place_[runs_of_[source].front()] + 1);
  }
  for (const Number hazard : graph_.hazards[task]) {
    first = std::max(first, place_[runs_of_[hazard].back()] + 1);
  }
  for (const Number user : graph_.hazard_of[task]) {
    end = std::min(end, place_[runs_of_[user].front()]);
  }
  const std::vector<Run>& runs = runs_of_[task];
  if (runs.front() == run) {
    for (const Number user : graph_.source_of[task]) {
      end = std::min(end, place_[runs_of_[user].front()]);
    }
    if (runs.size() > 1) end = std::min(end, place_[runs[1]]);
  } else {
    const auto own = std::ranges::find(runs, run);
    first = std::max(first, place_[*(own - 1)] + 1);
    if (own + 1 != runs.end()) end = std::min(end, place_[*(own + 1)]);
  }
  return {.first = first, .last = end - 1};
}

bool RunSequence::may_insert(Number task, Place place) const {
  if (!graph_.may_rerun[task] || place_[runs_of_[task].front()] >= place) return false;
  const auto has_run = [&](Number source) { return place_[runs_of_[source].front()] < place; };
  const auto is_to_come = [&](Number user) { return place_[runs_of_[user].front()] >= place; };
  return std::ranges::all_of(graph_.sources[task], has_run) &&
         std::ranges::all_of(graph_.hazard_of[task], is_to_come);
}

void RunSequence::touch(Place first, Place last) {
  dirty_first_ = is_dirty_ ? std::min(dirty_first_, first) : first;
  dirty_last_ = is_dirty_ ? std::max(dirty_last_, last) : last;
  is_dirty_ = true;
}

void RunSequence::number_from(Place first, Place last) {
  for (Place p = first; p <= last; ++p) place_[order_[p]] = p;
}

// Finds the last reader of a value that `run` makes anew.
void RunSequence::refresh(Run run, Number value) {
  const Place begin = place_[run];
  const Place end = end_of(run);
  Place last = begin;
  for (const Number consumer : graph_.values[value].consumers) {
    const std::vector<Run>& readers = runs_of_[consumer];
    for (std::size_t i = readers.size(); i-- > 0;) {
      if (place_[readers[i]] >= end) continue;
      last = std::max(last, place_[readers[i]]);
      break;
    }
  }
  Run& reader = last_[run][value - graph_.first_value[task_[run]]];
  if (reader == order_[last]) return;
  const std::int64_t bytes = graph_.values[value].bytes;
  const Place before = place_[reader];
  freed_[reader] -= bytes;
  reader = order_[last];
  freed_[reader] += bytes;
  touch(std::min(before, last), std::max(before, last));
}

void RunSequence::refresh_outputs(Run run) {
  const Number task = task_[run];
  for (Number v = graph_.first_value[task]; v < graph_.first_value[task + 1]; ++v) refresh(run, v);
}

// Refreshes the values that a run of `task` at `place` reads, or would read.
void RunSequence::refresh_inputs(Number task, Place place) {
  for (const Number v : graph_.inputs[task]) {
    refresh(run_before(graph_.values[v].producer, place), v);
  }
}

void RunSequence::move(Run run, Place to) {
  const Place from = place_[run];
  if (from < to) {
    std::rotate(order_.begin() + from, order_.begin() + from + 1, order_.begin() + to + 1);
  } else {
    std::rotate(order_.begin() + to, order_.begin() + from, order_.begin() + from + 1);
  }
  number_from(std::min(from, to), std::max(from, to));
  touch(std::min(from, to), std::max(from, to));
  refresh_inputs(task_[run], from < to ? from : from + 1);
  refresh_inputs(task_[run], to);
  refresh_outputs(run);
  if (!is_first(run)) refresh_outputs(run_before(task_[run], to));
}

RunSequence::Run RunSequence::add(Number task, Place place) {
  Run run = static_cast<Run>(task_.size());
  if (unused_.empty()) {
    task_.push_back(task);
    place_.push_back(place);
    freed_.push_back(0);
    last_.emplace_back();
    rerun_index_.push_back(0);
  } else {
    run = unused_.back();
    unused_.pop_back();
    task_[run] = task;
  }
  freed_[run] = graph_.outputs[task];
  last_[run].assign(graph_.first_value[task + 1] - graph_.first_value[task], run);
  order_.insert(order_.begin() + place, run);
  live_.insert(live_.begin() + place, 0);
  after_.insert(after_.begin() + place, 0);
  number_from(place, size() - 1);
  if (is_dirty_ && dirty_last_ >= place) ++dirty_last_;
  if (is_dirty_ && dirty_first_ > place) ++dirty_first_;
  touch(place, place);
  std::vector<Run>& runs = runs_of_[task];
  const auto next = std::ranges::find_if(runs, [&](Run other) { return place_[other] > place; });
  runs.insert(next, run);
  rerun_index_[run] = static_cast<std::uint32_t>(reruns_.size());
  reruns_.push_back(run);
  seconds_ += graph_.seconds[task];
  refresh_outputs(run);
  refresh_outputs(run_before(task, place));
  refresh_inputs(task, place);
  return run;
}

void RunSequence::take_out(Run run) {
  const Number task = task_[run];
  const Place place = place_[run];
  for (std::size_t k = 0; k < last_[run].size(); ++k) {
    const Run reader = last_[run][k];
    freed_[reader] -= graph_.values[graph_.first_value[task] + k].bytes;
    touch(place, place_[reader]);
  }
  excess_ -= std::max<std::int64_t>(0, live_[place] - pool_);
  std::erase(runs_of_[task], run);
  reruns_[rerun_index_[run]] = reruns_.back();
  rerun_index_[reruns_.back()] = rerun_index_[run];
  reruns_.pop_back();
  // Another run is now the last reader of its inputs.
  for (const Number v : graph_.inputs[task]) {
    refresh(run_before(graph_.values[v].producer, place), v);
  }
  refresh_outputs(run_before(task, place));
  order_.erase(order_.begin() + place);
  live_.erase(live_.begin() + place);
  after_.erase(after_.begin() + place);
  if (place < size()) number_from(place, size() - 1);
  if (is_dirty_ && dirty_last_ > place) --dirty_last_;
  if (is_dirty_ && dirty_first_ > place) --dirty_first_;
  if (place < size()) touch(place, place);
  unused_.push_back(run);
  seconds_ -= graph_.seconds[task];
}

void RunSequence::shift(Run run, Place to) {
  const Place from = place_[run];
  if (from == to) return;
  log_.push_back({.change = Change::kShift, .place = to, .from = from, .task = 0});
  move(run, to);
}

RunSequence::Run RunSequence::insert(Number task, Place place) {
  log_.push_back({.change = Change::kInsert, .place = place, .from = 0, .task = task});
  return add(task, place);
}

void RunSequence::remove(Run run) {
  log_.push_back({.change = Change::kRemove, .place = place_[run], .from = 0, .task = task_[run]});
  take_out(run);
}

void RunSequence::undo() {
  while (!log_.empty()) {
    const Entry entry = log_.back();
    log_.pop_back();
    switch (entry.change) {
      case Change::kShift:
        move(order_[entry.place], entry.from);
        break;
      case Change::kInsert:
        take_out(order_[entry.place]);
        break;
      case Change::kRemove:
        add(entry.task, entry.place);
        break;
    }
  }
}

void RunSequence::set_pool(std::int64_t pool) {
  pool_ = pool;
  excess_ = 0;
  for (const std::int64_t live : live_) excess_ += std::max<std::int64_t>(0, live - pool_);
}

void RunSequence::settle() {
  if (!is_dirty_ || order_.empty()) {
    is_dirty_ = false;
    return;
  }
  const Place last = std::min(dirty_last_, size() - 1);
  std::int64_t bytes = dirty_first_ > 0 ? after_[dirty_first_ - 1] : 0;
  std::int64_t excess = 0;
  for (Place p = dirty_first_; p < size(); ++p) {
    const Run run = order_[p];
    const Number task = task_[run];
    bytes += graph_.outputs[task];
    const std::int64_t live = bytes + graph_.workspaces[task];
    bytes -= freed_[run];
    excess += std::max<std::int64_t>(0, live - pool_) - std::max<std::int64_t>(0, live_[p] - pool_);
    live_[p] = live;
    const bool is_as_before = after_[p] == bytes;
    after_[p] = bytes;
    if (p >= last && is_as_before) break;
  }
  excess_ += excess;
  is_dirty_ = false;
}

std::vector<TaskRun> RunSequence::runs() const {
  std::vector<TaskRun> runs;
  runs.reserve(order_.size());
  for (const Run run : order_) {
    const Number task = task_[run];
    runs.push_back({.task = TaskId{task},
                    .algorithm = graph_.algorithms[task],
                    .is_recomputation = !is_first(run)});
  }
  return runs;
}

}  // namespace spillway::prefetch
