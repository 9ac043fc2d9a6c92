#include "prefetch/runtime/plan_walker.h"

#include <algorithm>
#include <future>
#include <utility>

namespace spillway::prefetch {

PlanWalker::PlanWalker(const Plan& plan, Issue offload, Issue prefetch)
    : plan_{plan}, offload_{std::move(offload)}, prefetch_{std::move(prefetch)} {
  std::promise<void> started;
  arena_.enqueue([&] { started.set_value(); });
  started.get_future().wait();
}

PlanWalker::~PlanWalker() {
  std::unique_lock lock{mutex_};
  is_stopped_ = true;
  changed_.wait(lock, [this] {
    return advances_pending_ == 0 && progress_.offloads == offloads_issued_ &&
           progress_.prefetches == prefetches_issued_;
  });
}

void PlanWalker::begin_step() {
  const std::lock_guard lock{mutex_};
  progress_ = {};
  offloads_issued_ = 0;
  prefetches_issued_ = 0;
  timeline_.offloads.assign(plan_.offloads.size(), {});
  timeline_.prefetches.assign(plan_.prefetches.size(), {});
  begin_ = Clock::now();
  is_stopped_ = false;
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

void PlanWalker::end_run() {
  const std::lock_guard lock{mutex_};
  ++progress_.runs;
  schedule_advance();
}

void PlanWalker::end_step() {
  wait_for({.runs = static_cast<std::uint32_t>(plan_.runs.size()),
            .offloads = static_cast<std::uint32_t>(plan_.offloads.size()),
            .prefetches = static_cast<std::uint32_t>(plan_.prefetches.size())});
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

void PlanWalker::schedule_advance() {
  // Beside one advance that may be running, one that has not started yet sees everything up to now.
  if (is_stopped_ || advances_pending_ > 1) return;
  ++advances_pending_;
  arena_.enqueue([this] { advance(); });
}

void PlanWalker::advance() {
  bool issued = true;
  while (issued) {
    issued = issue_next(plan_.offloads, offloads_issued_, offload_, &Progress::offloads,
                        &Timeline::offloads);
    issued = issue_next(plan_.prefetches, prefetches_issued_, prefetch_, &Progress::prefetches,
                        &Timeline::prefetches) ||
             issued;
  }
  const std::lock_guard lock{mutex_};
  --advances_pending_;
  changed_.notify_all();
}

bool PlanWalker::issue_next(const std::vector<Move>& moves, std::uint32_t& issued,
                            const Issue& issue, std::uint32_t Progress::*ended,
                            std::vector<Interval> Timeline::*intervals) {
  std::uint32_t index = 0;
  {
    const std::lock_guard lock{mutex_};
    if (is_stopped_ || issued == moves.size() || !progress_.reaches(moves[issued].after)) {
      return false;
    }
    index = issued++;
    (timeline_.*intervals)[index].begin = now();
  }
  const auto done = [this, index, ended, intervals](std::exception_ptr error) {
    complete(index, ended, intervals, std::move(error));
  };
  if (issue(index, done)) return true;
  const std::lock_guard lock{mutex_};
  --issued;
  return false;
}

void PlanWalker::complete(std::uint32_t index, std::uint32_t Progress::*ended,
                          std::vector<Interval> Timeline::*intervals, std::exception_ptr error) {
  // Everything under the lock: once it is released the destructor may be through.
  const std::lock_guard lock{mutex_};
  if (error != nullptr && error_ == nullptr) error_ = std::move(error);
  std::vector<Interval>& all = timeline_.*intervals;
  all[index].end = now();
  // A queue is in order: a move begins when its predecessor has ended, however early it was issued.
  if (index > 0) all[index].begin = std::max(all[index].begin, all[index - 1].end);
  ++(progress_.*ended);
  changed_.notify_all();
  schedule_advance();
}

}  // namespace spillway::prefetch
