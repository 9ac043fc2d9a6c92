#include "prefetch/runtime/plan_walker.h"

#include <oneapi/tbb/info.h>

#include <algorithm>
#include <utility>

namespace spillway::prefetch {
namespace {

// Returns how many slots of the arena are reserved for the caller. On one processor, oneTBB has no
// worker to spare and warns about an arena that asks for one. An arena reserved for its caller
// still gets a thread for enqueued tasks.
unsigned reserved_slots() { return oneapi::tbb::info::default_concurrency() == 1 ? 1 : 0; }

}  // namespace

PlanWalker::PlanWalker(const Plan& plan, Issue offload, Issue prefetch, bool copies_while_read)
    : plan_{plan},
      copies_while_read_{copies_while_read},
      offloads_{.moves = plan.offloads,
                .issue = std::move(offload),
                .ended = &Progress::offloads,
                .intervals = &Timeline::offloads},
      prefetches_{.moves = plan.prefetches,
                  .issue = std::move(prefetch),
                  .ended = &Progress::prefetches,
                  .intervals = &Timeline::prefetches},
      arena_{1, reserved_slots()} {
  std::unique_lock lock{mutex_};
  advances_pending_ = 1;
  enqueue(&PlanWalker::end_advance);
  changed_.wait(lock, [this] { return advances_pending_ == 0; });
}

PlanWalker::~PlanWalker() {
  std::unique_lock lock{mutex_};
  is_stopped_ = true;
  changed_.wait(lock, [this] {
    return advances_pending_ == 0 && offloads_.completed == offloads_.issued &&
           prefetches_.completed == prefetches_.issued;
  });
}

void PlanWalker::begin_step() {
  const std::lock_guard lock{mutex_};
  ++step_;
  progress_ = {};
  begin(offloads_);
  begin(prefetches_);
  begin_ = Clock::now();
  is_stopped_ = false;
  schedule_advance();
}

void PlanWalker::begin(Queue& queue) {
  queue.issued = 0;
  queue.accepted = 0;
  queue.completed = 0;
  queue.has_ended.assign(queue.moves.size(), false);
  queue.ended_at.assign(queue.moves.size(), {});
  (timeline_.*queue.intervals).assign(queue.moves.size(), {});
}

bool PlanWalker::wait_for(const Progress& after, const std::function<bool()>& interrupted) {
  std::unique_lock lock{mutex_};
  bool was_interrupted = false;
  changed_.wait(lock, [&] {
    if (error_ != nullptr || progress_.reaches(after)) return true;
    was_interrupted = interrupted();
    return was_interrupted;
  });
  if (error_ != nullptr) std::rethrow_exception(error_);
  return !was_interrupted;
}

void PlanWalker::wait_until_issued(std::uint32_t prefetches) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return error_ != nullptr || prefetches_.accepted >= prefetches; });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void PlanWalker::end_run() {
  const std::lock_guard lock{mutex_};
  ++progress_.runs;
  count(offloads_);
  schedule_advance();
}

void PlanWalker::fail(std::exception_ptr error) {
  const std::lock_guard lock{mutex_};
  if (error_ == nullptr) error_ = std::move(error);
  changed_.notify_all();
}

bool PlanWalker::end_step(const std::function<bool()>& interrupted) {
  const Progress all{.runs = static_cast<std::uint32_t>(plan_.runs.size()),
                     .offloads = static_cast<std::uint32_t>(plan_.offloads.size()),
                     .prefetches = static_cast<std::uint32_t>(plan_.prefetches.size())};
  return wait_for(all, interrupted);
}

void PlanWalker::nudge() {
  const std::lock_guard lock{mutex_};
  changed_.notify_all();
  schedule_advance();
}

Timeline PlanWalker::moves() const {
  const std::lock_guard lock{mutex_};
  return timeline_;
}

void PlanWalker::enqueue(void (PlanWalker::*task)()) {
  // TSan does not see how TBB hands a task over, so reads of the task itself are excluded.
  arena_.enqueue([ this, task ]() __attribute__((no_sanitize("thread"))) { (this->*task)(); });
}

void PlanWalker::schedule_advance() noexcept {
  // One running advance and one that has not started yet see all events up to now.
  if (is_stopped_ || advances_pending_ > 1) return;
  ++advances_pending_;
  try {
    enqueue(&PlanWalker::advance);
  } catch (...) {
    --advances_pending_;
    if (error_ == nullptr) error_ = std::current_exception();
    changed_.notify_all();
  }
}

void PlanWalker::advance() {
  bool issued = true;
  while (issued) {
    issued = issue_next(offloads_);
    issued = issue_next(prefetches_) || issued;
  }
  end_advance();
}

void PlanWalker::end_advance() {
  const std::lock_guard lock{mutex_};
  --advances_pending_;
  changed_.notify_all();
}

bool PlanWalker::issue_next(Queue& queue) {
  std::uint32_t index = 0;
  std::uint64_t step = 0;
  {
    const std::lock_guard lock{mutex_};
    if (is_stopped_ || queue.issued == queue.moves.size() ||
        !may_start(queue.moves[queue.issued])) {
      return false;
    }
    index = queue.issued++;
    step = step_;
    (timeline_.*queue.intervals)[index].begin = now();
  }
  const auto done = [this, &queue, index](std::exception_ptr error) {
    complete(queue, index, std::move(error));
  };
  try {
    const bool is_accepted = queue.issue(index, done);
    const std::lock_guard lock{mutex_};
    if (!is_accepted) {
      --queue.issued;
    } else if (step == step_) {  // the step may have ended if its last move ended at once
      queue.accepted = index + 1;
      changed_.notify_all();
    }
    return is_accepted;
  } catch (...) {
    complete(queue, index, std::current_exception());
    return true;
  }
}

bool PlanWalker::may_start(const Move& move) const {
  return progress_.reaches(move.after) &&
         (copies_while_read_ || progress_.runs >= move.frees_after());
}

void PlanWalker::complete(Queue& queue, std::uint32_t index, std::exception_ptr error) {
  // Everything under the lock: after its release the destructor may run.
  const std::lock_guard lock{mutex_};
  if (error != nullptr && error_ == nullptr) error_ = std::move(error);
  queue.has_ended[index] = true;
  ++queue.completed;
  queue.ended_at[index] = now();
  count(queue);
  changed_.notify_all();
  schedule_advance();
}

void PlanWalker::count(Queue& queue) {
  std::vector<Interval>& intervals = timeline_.*queue.intervals;
  std::uint32_t& ended = progress_.*queue.ended;
  for (; ended < queue.issued && queue.has_ended[ended] &&
         progress_.runs >= queue.moves[ended].frees_after();
       ++ended) {
    // A move begins when its predecessor has ended, however early it was issued.
    const um::Nanoseconds before = ended == 0 ? um::Nanoseconds{0} : intervals[ended - 1].end;
    intervals[ended].begin = std::max(intervals[ended].begin, before);
    intervals[ended].end = std::max(queue.ended_at[ended], before);
  }
}

}  // namespace spillway::prefetch
