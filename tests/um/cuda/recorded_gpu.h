#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/um/cuda/happens_before.h"
#include "tests/um/cuda/recorded_graphs.h"
#include "tests/um/cuda/recorded_memory.h"
#include "tests/um/cuda/recorded_streams.h"
#include "um/cuda/driver/check.h"
#include "um/hints.h"

namespace spillway::um {

/// What stands for a GPU and its driver behind RecordingApi, as tests see it: they say when it gets
/// how far and what fails, and learn what it was asked. Events fire at once or, after hold(), one
/// by one as finish() says: as on a GPU, in order on each stream.
///
/// Every call says what it does to which memory, and launch() does for a kernel. Two of them that
/// have no order (happens_before.h) and need one fail the test.
class RecordedGpu {
 public:
  RecordedGpu(const RecordedGpu&) = delete;
  RecordedGpu& operator=(const RecordedGpu&) = delete;

  // --- what a test says

  /// Events recorded from now on fire by finish() alone.
  void hold() {
    const std::lock_guard lock{mutex_};
    is_held_ = true;
  }
  /// The GPU gets as far as the next event on the stream of this name, once it is recorded, at
  /// `time` on its clock.
  void finish(const std::string& stream, Nanoseconds time = Nanoseconds{0}) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return !streams_.named(stream).pending.empty(); });
    fire_next(streams_.named(stream), time);
  }
  /// True when an event has still to fire.
  [[nodiscard]] bool is_busy() {
    const std::lock_guard lock{mutex_};
    return !streams_.busy().empty();
  }
  /// As finish(), of one of the streams that have such an event. Requires: is_busy().
  void finish_one(std::uint32_t draw) {
    const std::lock_guard lock{mutex_};
    const auto busy = streams_.busy();
    fire_next(*busy.at(draw % busy.size()), Clock::now() - begin_);
  }
  /// Everything fires, and from now on at once.
  void let_go() {
    const std::lock_guard lock{mutex_};
    is_held_ = false;
    for (auto* const stream : streams_.busy()) {
      while (!stream->pending.empty()) fire_next(*stream, Nanoseconds{0});
    }
  }
  /// Calls whose note contains `part` fail with `error`.
  void fail(const std::string& part, cudaError_t error) {
    const std::lock_guard lock{mutex_};
    failing_ = part;
    failure_ = error;
  }
  /// The streams are being captured from now on, or no more.
  void capture(bool is_on) {
    const std::lock_guard lock{mutex_};
    is_capturing_ = is_on;
  }
  /// What is asked about events fails from now on, unless it is cudaSuccess.
  void fail_events(cudaError_t error) {
    const std::lock_guard lock{mutex_};
    event_failure_ = error;
    changed_.notify_all();
  }
  void set_free(Bytes free) {
    const std::lock_guard lock{mutex_};
    free_ = free;
  }
  /// Adds a line of the test's: a launch, say.
  void note(const std::string& line) {
    const std::lock_guard lock{mutex_};
    note_locked(line);
  }
  /// A kernel of the test's, with what it uses: "compute: make a". `act` is what it does: now, or
  /// where it is captured whenever it is repeated.
  void launch(
      cudaStream_t stream, const std::string& name, std::span<const Use> operands,
      std::function<void()> act = [] {}) {
    const std::lock_guard lock{mutex_};
    const std::string line = of(stream) + name;
    call(line);
    std::vector<HappensBefore::Access> accesses;
    for (const Use& use : operands) {
      accesses.push_back({use.range, use.access == Access::kRead ? Effect::kRead : Effect::kWrite});
    }
    give(stream, line, accesses, std::move(act));
  }
  /// The host uses memory itself.
  void touch(std::span<const std::byte> range, Access access) {
    const std::lock_guard lock{mutex_};
    const Effect effect = access == Access::kRead ? Effect::kRead : Effect::kWrite;
    tell(order_.touch("the host's use", {.range = range, .effect = effect}));
  }
  /// The same, of what may be far: `act` reads and writes it where it lies.
  void use_on_host(std::span<const Range> ranges, const std::function<void()>& act) {
    const std::lock_guard lock{mutex_};
    for (const Range& range : ranges) {
      tell(order_.touch("the host's use", {.range = range, .effect = Effect::kWrite}));
    }
    memory_.use_on_host(ranges, act);
  }
  /// The host waits for all streams: for cudaDeviceSynchronize(). Requires: no event is held.
  void synchronize_all() {
    const std::lock_guard lock{mutex_};
    order_.host_knows(order_.everything());
  }
  /// `to` is called whenever a graph is launched.
  void tell_launches(std::function<void()> to) {
    const std::lock_guard lock{mutex_};
    tell_launch_ = std::move(to);
  }
  /// What is told of accesses without an order; unless a test says so, they fail it.
  void tell_conflicts(std::function<void(const std::string&)> to) {
    const std::lock_guard lock{mutex_};
    tell_ = std::move(to);
  }

  // --- what it learns

  void wait_until_noted(const std::string& line, std::ptrdiff_t times = 1) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return std::ranges::count(log_, line) >= times; });
  }
  /// Waits for so many events on the stream of this name since hold().
  void wait_until_recorded(const std::string& stream, std::uint64_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return streams_.named(stream).held >= count; });
  }
  /// The notes since the last call.
  [[nodiscard]] std::vector<std::string> take_log() {
    const std::lock_guard lock{mutex_};
    return std::exchange(log_, {});
  }
  /// Calls of the driver so far, launches of kernels among them.
  [[nodiscard]] std::size_t calls() {
    const std::lock_guard lock{mutex_};
    return calls_;
  }
  [[nodiscard]] std::size_t live_objects() {
    const std::lock_guard lock{mutex_};
    return live_;
  }

 protected:
  RecordedGpu() = default;
  ~RecordedGpu() = default;

  using Clock = std::chrono::steady_clock;

  // All of these require the lock.
  [[nodiscard]] std::string of(cudaStream_t stream) { return streams_.of(stream).name + ": "; }
  void call(const std::string& line) {
    ++calls_;
    note_locked(line);
  }
  void note_locked(const std::string& line) {
    log_.push_back(line);
    changed_.notify_all();
    if (!failing_.empty() && line.find(failing_) != std::string::npos) check(failure_);
  }
  void fire_next(RecordedStreams::Stream& stream, Nanoseconds time) {
    streams_.fire_next(stream, time);
    changed_.notify_all();
  }
  /// A stream is given what `line` says: it is done now, or kept.
  void give(cudaStream_t stream, const std::string& line,
            const std::vector<HappensBefore::Access>& accesses, std::function<void()> act) {
    if (graphs_.is_captured(stream)) {
      graphs_.give(stream, line, accesses, std::move(act));
      return;
    }
    tell(order_.give(RecordedStreams::index(stream), line, accesses));
    act();
  }
  void tell(const std::vector<HappensBefore::Conflict>& conflicts) {
    for (const auto& each : conflicts) {
      tell_("no order between \"" + each.earlier + "\" and, later, \"" + each.later + "\" on " +
            memory_.units(each.range));
    }
  }

  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_held_ = false;
  bool is_capturing_ = false;
  cudaError_t event_failure_ = cudaSuccess;
  Bytes free_{140ULL << 30U};
  std::string failing_;
  cudaError_t failure_ = cudaSuccess;
  std::vector<std::string> log_;
  RecordedStreams streams_;
  RecordedGraphs graphs_;
  RecordedMemory memory_;
  HappensBefore order_;
  std::function<void(const std::string&)> tell_ = [](const std::string& conflict) {
    ADD_FAILURE() << conflict;
  };
  std::function<void()> tell_launch_ = [] {};
  std::size_t calls_ = 0;
  std::size_t live_ = 0;  // streams, events and allocations that have not ended
};

}  // namespace spillway::um
