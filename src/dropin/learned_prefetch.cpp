#include "src/dropin/learned_prefetch.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>
#include <variant>

#include "um/dropin/allocations.h"
#include "um/error.h"
#include "um/memory.h"
#include "um/threads/engine.h"

namespace spillway::dropin {
namespace {

/// Reserves near memory for what is not learned: small allocations and page faults.
um::Bytes budget_of(const um::Space& space) {
  const um::Bytes spare = std::max(2 * space.page(), um::Bytes{space.near_budget().count() / 16});
  return um::saturating_difference(space.near_budget(), um::round_up(spare, space.page()));
}

}  // namespace

LearnedPrefetch::LearnedPrefetch(um::Space& space, const prefetch::LinkProfile& link)
    : space_{space},
      size_{choose_pieces(space.near_budget(), space.page())},
      options_{.budget = budget_of(space), .page = space.page(), .link = link},
      worker_{[this] { work(); }} {}

LearnedPrefetch::~LearnedPrefetch() {
  {
    const std::lock_guard lock{queue_mutex_};
    is_closed_ = true;
    changed_.notify_all();
  }
  worker_.join();
  std::unique_lock lock{queue_mutex_};
  changed_.wait(lock, [this] { return under_way_ == 0; });
}

template <typename Work>
void LearnedPrefetch::follow(const Work& work) {
  if (is_off_) return;
  try {
    work();
  } catch (const std::exception& failure) {
    switch_off(failure.what());
  } catch (...) {
    switch_off("something that is no exception of C++");
  }
}

template <typename Work>
void LearnedPrefetch::tell(const Work& work) {
  told_since_ = waits_;
  follow(work);
}

/// Requires: the caller holds the mutex. Moves in flight end normally.
void LearnedPrefetch::switch_off(const char* why) noexcept {
  is_off_ = true;
  try {
    why_off_ = std::string{"switched off, because learning failed: "} + why;
  } catch (const std::bad_alloc&) {  // a message is not worth a failure
  }
  const std::lock_guard lock{queue_mutex_};
  is_told_ = false;
  replay_plans_over_ = replay_plans_wanted_;
  ended_.clear();
  open_.clear();
  changed_.notify_all();
}

// --- events of the program

um::Nanoseconds LearnedPrefetch::now() {
  const um::Nanoseconds clock = std::chrono::steady_clock::now().time_since_epoch();
  last_ = std::max(last_, clock - space_.counters().moves.fault_time);
  return last_;
}

/// Returns a block's id: its offset in the space.
std::uint64_t LearnedPrefetch::id_of(const um::Range& block) const {
  return static_cast<std::uint64_t>(block.data() - space_.slab().data());
}

void LearnedPrefetch::mark() {
  const std::lock_guard lock{mutex_};
  tell([this] {
    const bool is_learning = replayer_.is_ready();
    issue(replayer_.mark(now()));
    if (is_learning || !replayer_.is_ready()) return;
    const std::lock_guard queue{queue_mutex_};
    ++replay_plans_wanted_;
    changed_.notify_all();
  });
}

void LearnedPrefetch::allocated(const std::byte* address, um::Bytes size) {
  const um::Range all{const_cast<std::byte*>(address), size.count()};
  const std::lock_guard lock{mutex_};
  tell([&] {
    for (const um::Range& piece : pieces_of(all, all, size_)) {
      replayer_.allocate(id_of(piece), um::Bytes{piece.size()});
    }
  });
}

void LearnedPrefetch::freeing(const void* address) {
  const std::lock_guard lock{mutex_};
  um::Range all;
  try {
    all = space_.allocation(address, um::Bytes{});
  } catch (const um::NotAllocated&) {
    return;  // the later free reports the misuse
  }
  if (all.data() != address) return;
  tell([&] {
    for (const um::Range& piece : pieces_of(all, all, size_)) {
      issue(replayer_.free(id_of(piece)));
    }
  });
}

void LearnedPrefetch::touching(const void* address, um::Bytes size, um::Access access) {
  const std::lock_guard lock{mutex_};
  const um::Range all = space_.allocation(address, size);
  const auto begin = static_cast<std::size_t>(static_cast<const std::byte*>(address) - all.data());
  tell([&] {
    const um::Nanoseconds at = now();
    for (const um::Range& piece : pieces_of(all, all.subspan(begin, size.count()), size_)) {
      issue(replayer_.touch(
          {.block = id_of(piece), .size = um::Bytes{piece.size()}, .access = access, .at = at}));
    }
  });
}

// --- prefetch commands

/// Requires: the caller holds the mutex.
void LearnedPrefetch::issue(const std::vector<prefetch::PrefetchCommand>& commands) {
  for (const prefetch::PrefetchCommand& command : commands) {
    const Move move{.ticket = command.ticket, .since = told_since_};
    {
      const std::lock_guard lock{queue_mutex_};
      const auto needed = ended_.size() + under_way_ + 1;
      if (needed > ended_.capacity()) ended_.reserve(2 * needed + 8);
      ++open_[move.since];
      ++under_way_;
    }
    const std::byte* const block = space_.slab().data() + command.block;
    bool is_started = false;
    try {
      is_started = space_.start_move(block + command.offset.count(), command.size, command.to,
                                     [this, move](const std::exception_ptr&) { end(move); });
    } catch (const um::Error&) {
      // Ignores failed far memory, since hints may be lost: the space reports the failure to its
      // users.
    } catch (...) {
      end(move);
      throw;
    }
    if (!is_started) end(move);
  }
}

/// A move may end while it is being issued. The worker tells the replayer later.
void LearnedPrefetch::end(Move move) noexcept {
  const std::lock_guard lock{queue_mutex_};
  if (is_told_) ended_.push_back(move);
  --under_way_;
  changed_.notify_all();
}

// --- the worker

void LearnedPrefetch::work() {
  um::prepare_worker_thread("um learn");
  std::unique_lock lock{queue_mutex_};
  while (true) {
    changed_.wait(lock, [this] {
      return is_closed_ || replay_plans_over_ < replay_plans_wanted_ || !ended_.empty();
    });
    if (is_closed_) return;
    const std::uint64_t wanted = replay_plans_wanted_;
    const bool wants_replay_plan = replay_plans_over_ < wanted;
    lock.unlock();
    complete();
    if (wants_replay_plan) learn_now();
    lock.lock();
    replay_plans_over_ = wanted;
    changed_.notify_all();
  }
}

std::vector<LearnedPrefetch::Move> LearnedPrefetch::take_ended() {
  const std::lock_guard lock{queue_mutex_};
  std::vector<Move> moves = ended_;  // a copy, since ended_ must keep its capacity
  ended_.clear();
  return moves;
}

void LearnedPrefetch::complete() {
  const std::lock_guard lock{mutex_};
  follow([this] {
    for (const Move& move : take_ended()) {
      issue(replayer_.complete(move.ticket));
      close(move.since);
    }
  });
}

/// Called after the commands that follow from the move's end were issued, so that a waiter sees
/// them.
void LearnedPrefetch::close(std::uint64_t since) noexcept {
  const std::lock_guard lock{queue_mutex_};
  const auto open = open_.find(since);
  if (open != open_.end() && --open->second == 0) open_.erase(open);
}

void LearnedPrefetch::learn_now() {
  prefetch::RecordedCycles recorded;
  {
    const std::lock_guard lock{mutex_};
    follow([&] { recorded = replayer_.recorded(); });
    if (is_off_) return;
  }
  std::variant<prefetch::ReplayPlan, prefetch::NotLearned> result;
  try {
    result = prefetch::learn(recorded, options_);
  } catch (const std::exception& failure) {
    const std::lock_guard lock{mutex_};
    follow([&] { replayer_.load(prefetch::NotLearned{failure.what()}); });
    return;
  }
  const std::lock_guard lock{mutex_};
  follow([&] { replayer_.load(std::move(result)); });
}

void LearnedPrefetch::wait() {
  std::unique_lock lock{queue_mutex_};
  const std::uint64_t before = waits_++;
  const std::uint64_t wanted = replay_plans_wanted_;
  changed_.wait(lock, [&] {
    return replay_plans_over_ >= wanted && (open_.empty() || open_.begin()->first > before);
  });
}

// --- counters

prefetch::ReplayerCounters LearnedPrefetch::counters() const {
  const std::lock_guard lock{mutex_};
  return replayer_.counters();
}

std::string LearnedPrefetch::status() const {
  const std::lock_guard lock{mutex_};
  return is_off_ ? why_off_ : replayer_.description();
}

}  // namespace spillway::dropin
