#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "tests/um/cuda/recorded_memory.h"
#include "um/cuda/driver/api.h"
#include "um/cuda/driver/check.h"

namespace spillway::um {

/// A driver without a GPU, that notes each call in words: "um in: prefetch near slab 0+2" is a
/// prefetch of two units of 2 MiB from the first one of the managed memory on, given to the stream
/// named "um in". Memory is the host's, and copies are made when they are given. Events fire at
/// once or, after hold(), one by one as finish() says: as on a GPU, in order on each stream.
class RecordingApi : public CudaApi {
 public:
  static CudaFacts h200() {
    return {.name = "NVIDIA H200",
            .ordinal = 0,
            .driver_version = 13000,
            .runtime_version = 13000,
            .compute_capability = 90,
            .memory = Bytes{141ULL << 30U},
            .copy_engines = 3,
            .has_concurrent_managed_access = true,
            .has_pageable_access = true,
            .uses_host_page_tables = false,
            .has_discard = true,
            .pci_bus = "0000:1B:00.0"};
  }

  explicit RecordingApi(CudaFacts facts = h200()) : facts_{std::move(facts)} {}

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
    changed_.wait(lock, [&] { return !stream_named(stream).pending.empty(); });
    Stream& found = stream_named(stream);
    fire(found.pending.front(), time);
    found.pending.pop_front();
  }
  /// Everything fires, and from now on at once.
  void let_go() {
    const std::lock_guard lock{mutex_};
    is_held_ = false;
    for (Stream& stream : streams_) {
      for (const Recorded& each : stream.pending) fire(each, Nanoseconds{0});
      stream.pending.clear();
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

  // --- what it learns

  void wait_until_noted(const std::string& line, std::ptrdiff_t times = 1) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return std::ranges::count(log_, line) >= times; });
  }
  /// Waits for so many events on the stream of this name since hold().
  void wait_until_recorded(const std::string& stream, std::uint64_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return stream_named(stream).held >= count; });
  }
  /// The notes since the last call.
  [[nodiscard]] std::vector<std::string> take_log() {
    const std::lock_guard lock{mutex_};
    return std::exchange(log_, {});
  }
  [[nodiscard]] std::size_t live_objects() {
    const std::lock_guard lock{mutex_};
    return live_;
  }

  // --- CudaApi

  [[nodiscard]] CudaFacts facts() override { return facts_; }
  [[nodiscard]] NearMemory memory() override {
    const std::lock_guard lock{mutex_};
    return {.free = free_, .total = facts_.memory};
  }

  [[nodiscard]] cudaStream_t make_stream(const std::string& name) override {
    const std::lock_guard lock{mutex_};
    const auto same = std::ranges::count_if(
        streams_, [&](const Stream& each) { return each.name.starts_with(name); });
    streams_.push_back({.name = same == 0 ? name : name + " " + std::to_string(same + 1)});
    ++live_;
    return reinterpret_cast<cudaStream_t>(streams_.size());
  }
  void end_stream(cudaStream_t /*stream*/) noexcept override { end(); }
  void synchronize(cudaStream_t stream) override {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return of(stream).pending.empty(); });
  }

  [[nodiscard]] bool is_captured(cudaStream_t /*stream*/) override {
    const std::lock_guard lock{mutex_};
    return is_capturing_;
  }

  [[nodiscard]] cudaEvent_t make_event() override {
    const std::lock_guard lock{mutex_};
    events_.emplace_back();
    ++live_;
    return reinterpret_cast<cudaEvent_t>(events_.size());
  }
  void end_event(cudaEvent_t /*event*/) noexcept override { end(); }
  void record(cudaEvent_t event, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    note_locked(of(stream).name + ": record");
    Event& recorded = of(event);
    recorded.stream = of(stream).name;
    const Recorded record{.event = index(event), .number = ++recorded.recorded};
    if (is_held_) {
      of(stream).pending.push_back(record);
      ++of(stream).held;
      changed_.notify_all();
    } else {
      fire(record, Clock::now() - begin_);
    }
  }
  void wait(cudaStream_t stream, cudaEvent_t event) override {
    const std::lock_guard lock{mutex_};
    note_locked(of(stream).name + ": wait for " + of(event).stream);
  }
  [[nodiscard]] bool has_fired(cudaEvent_t event) override {
    const std::lock_guard lock{mutex_};
    check(event_failure_);
    return of(event).fired == of(event).recorded;
  }
  void synchronize(cudaEvent_t event) override {
    std::unique_lock lock{mutex_};
    const std::uint64_t number = of(event).recorded;
    changed_.wait(lock, [&] { return of(event).fired >= number || event_failure_ != cudaSuccess; });
    check(event_failure_);
  }
  [[nodiscard]] Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) override {
    const std::lock_guard lock{mutex_};
    return of(to).time - of(from).time;
  }

  [[nodiscard]] std::byte* allocate_device(Bytes size) override { return take("device", size); }
  void free_device(std::byte* address) noexcept override { give_back(address); }
  [[nodiscard]] std::byte* allocate_managed(Bytes size) override { return take("slab", size); }
  void free_managed(std::byte* address) noexcept override { give_back(address); }
  [[nodiscard]] std::byte* allocate_pinned(Bytes size) override { return take("pinned", size); }
  void free_pinned(std::byte* address) noexcept override { give_back(address); }

  void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    note_locked(of(stream).name + ": copy " + memory_.units(from) + " to " + memory_.place(to));
    std::memcpy(to, from.data(), from.size());
  }
  void prefetch(Range range, MemoryTier to, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    note_locked(of(stream).name + ": prefetch " + (to == MemoryTier::kNear ? "near " : "far ") +
                memory_.units(range));
    if (to == MemoryTier::kNear) {
      memory_.bring_near(range);
    } else {
      memory_.send_far(range);
    }
  }
  void discard(std::span<const Range> ranges, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    note_locked(of(stream).name + ": discard" + memory_.units(ranges));
    memory_.discard(ranges);
  }
  void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    note_locked(of(stream).name + ": discard and prefetch near" + memory_.units(ranges));
    memory_.discard(ranges);
  }
  void advise(Range range, Advice advice) override {
    const std::lock_guard lock{mutex_};
    note_locked("advise " + memory_.units(range) +
                (advice == Advice::kPreferNear ? " near" : " something else"));
  }

  void begin_label(const std::string& name) override { note("begin " + name); }
  void end_label() override { note("end"); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Recorded {
    std::size_t event;
    std::uint64_t number;
  };
  struct Stream {
    std::string name;
    std::deque<Recorded> pending;
    std::uint64_t held = 0;  // events that were pending at some time
  };
  struct Event {
    std::string stream;
    std::uint64_t recorded = 0;
    std::uint64_t fired = 0;
    Nanoseconds time{0};
  };
  // All of these require the lock. Handles count from 1.
  static std::size_t index(cudaEvent_t event) {
    return reinterpret_cast<std::uintptr_t>(event) - 1;
  }
  Stream& of(cudaStream_t stream) {
    return streams_.at(reinterpret_cast<std::uintptr_t>(stream) - 1);
  }
  Event& of(cudaEvent_t event) { return events_.at(index(event)); }
  Stream& stream_named(const std::string& name) {
    return *std::ranges::find(streams_, name, &Stream::name);
  }
  void note_locked(const std::string& line) {
    log_.push_back(line);
    changed_.notify_all();
    if (!failing_.empty() && line.find(failing_) != std::string::npos) check(failure_);
  }
  void fire(const Recorded& recorded, Nanoseconds time) {
    Event& event = events_.at(recorded.event);
    event.fired = recorded.number;
    event.time = time;
    changed_.notify_all();
  }
  std::byte* take(const std::string& kind, Bytes size) {
    const std::lock_guard lock{mutex_};
    note_locked("allocate " + kind + " " + to_string(size));
    std::byte* const address = memory_.take(kind, size);
    ++live_;
    return address;
  }
  void give_back(std::byte* address) noexcept {
    const std::lock_guard lock{mutex_};
    memory_.give_back(address);
    --live_;
  }
  void end() noexcept {
    const std::lock_guard lock{mutex_};
    --live_;
  }

  const CudaFacts facts_;
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
  std::deque<Stream> streams_;
  std::deque<Event> events_;
  RecordedMemory memory_;
  std::size_t live_ = 0;  // streams, events and allocations that have not ended
};

}  // namespace spillway::um
