#pragma once

#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/um/cuda/recorded_gpu.h"
#include "um/cuda/driver/api.h"

namespace spillway::um {

/// A driver without a GPU that records each call as text. "um in: prefetch near slab 0+2"
/// prefetches the first two units of 2 MiB of the managed memory on the stream "um in". Memory is
/// host memory, and copies run at submission.
class RecordingApi : public CudaApi, public RecordedGpu {
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

  [[nodiscard]] CudaFacts facts() override { return facts_; }
  [[nodiscard]] NearMemory memory() override {
    const std::lock_guard lock{mutex_};
    return {.free = free_, .total = facts_.memory};
  }

  void enter_thread() noexcept override {}

  [[nodiscard]] cudaStream_t make_stream(const std::string& name) override {
    const std::lock_guard lock{mutex_};
    ++live_;
    return streams_.make_stream(name);
  }
  void end_stream(cudaStream_t /*stream*/) noexcept override { end(); }
  void synchronize(cudaStream_t stream) override {
    std::unique_lock lock{mutex_};
    ++calls_;
    check(graphs_.is_captured(stream) ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    const WorkClock now = order_.record(RecordedStreams::index(stream));
    changed_.wait(lock, [&] { return streams_.of(stream).pending.empty(); });
    order_.host_knows(now);
  }

  [[nodiscard]] bool is_captured(cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    return is_capturing_ || graphs_.is_captured(stream);
  }
  void begin_capture(cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    call(of(stream) + "begin capture");
    graphs_.begin(stream);
  }
  [[nodiscard]] cudaGraphExec_t end_capture(cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    call(of(stream) + "end capture");
    ++live_;
    return graphs_.end(streams_);
  }
  void abandon_capture(cudaStream_t stream) noexcept override {
    const std::lock_guard lock{mutex_};
    log_.push_back(of(stream) + "abandon capture");
    graphs_.abandon();
  }
  using RecordedGpu::launch;
  void launch(cudaGraphExec_t graph, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    call(of(stream) + "launch graph");
    tell_launch_();
    graphs_.launch(graph, stream, order_, [this](const auto& conflicts) { tell(conflicts); });
  }
  void end_graph(cudaGraphExec_t /*graph*/) noexcept override { end(); }

  [[nodiscard]] cudaEvent_t make_event() override {
    const std::lock_guard lock{mutex_};
    ++live_;
    return streams_.make_event();
  }
  void end_event(cudaEvent_t /*event*/) noexcept override { end(); }
  void record(cudaEvent_t event, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    call(of(stream) + "record");
    if (graphs_.is_captured(stream)) {
      streams_.of(event).stream = streams_.of(stream).name;
      graphs_.record(event, stream);
      return;
    }
    streams_.record(event, stream, order_.record(RecordedStreams::index(stream)));
    if (is_held_) {
      ++streams_.of(stream).held;
      changed_.notify_all();
    } else {
      fire_next(streams_.of(stream), Clock::now() - begin_);
    }
  }
  void wait(cudaStream_t stream, cudaEvent_t event) override {
    const std::lock_guard lock{mutex_};
    call(of(stream) + "wait for " + streams_.of(event).stream);
    if (graphs_.wait(stream, event)) return;
    order_.wait(RecordedStreams::index(stream), streams_.of(event).after);
  }
  [[nodiscard]] bool has_fired(cudaEvent_t event) override {
    const std::lock_guard lock{mutex_};
    ++calls_;
    check(event_failure_);
    const auto& asked = streams_.of(event);
    if (asked.fired != asked.recorded) return false;
    order_.host_knows(asked.after);
    return true;
  }
  void synchronize(cudaEvent_t event) override {
    std::unique_lock lock{mutex_};
    ++calls_;
    const auto& awaited = streams_.of(event);
    const std::uint64_t number = awaited.recorded;
    const WorkClock after = awaited.after;
    changed_.wait(lock, [&] { return awaited.fired >= number || event_failure_ != cudaSuccess; });
    check(event_failure_);
    order_.host_knows(after);
  }
  [[nodiscard]] Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) override {
    const std::lock_guard lock{mutex_};
    ++calls_;
    return streams_.of(to).time - streams_.of(from).time;
  }

  [[nodiscard]] std::byte* allocate_device(Bytes size) override { return take("device", size); }
  void free_device(std::byte* address) noexcept override { give_back(address); }
  [[nodiscard]] std::byte* allocate_managed(Bytes size) override { return take("slab", size); }
  void free_managed(std::byte* address) noexcept override { give_back(address); }
  [[nodiscard]] std::byte* allocate_pinned(Bytes size) override { return take("pinned", size); }
  void free_pinned(std::byte* address) noexcept override { give_back(address); }

  void copy(std::span<const std::byte> from, std::byte* to, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    const std::string line =
        of(stream) + "copy " + memory_.units(from) + " to " + memory_.place(to);
    call(line);
    give(stream, line, {{{from, Effect::kRead}, {{to, from.size()}, Effect::kWrite}}},
         [from, to] { std::memcpy(to, from.data(), from.size()); });
  }
  void prefetch(Range range, MemoryTier to, cudaStream_t stream) override {
    const std::lock_guard lock{mutex_};
    const bool comes = to == MemoryTier::kNear;
    const std::string line =
        of(stream) + "prefetch " + (comes ? "near " : "far ") + memory_.units(range);
    call(line);
    give(stream, line, {{{range, comes ? Effect::kMoveNear : Effect::kMoveFar}}}, [=, this] {
      if (comes) {
        memory_.bring_near(range);
      } else {
        memory_.send_far(range);
      }
    });
  }
  void discard(std::span<const Range> ranges, cudaStream_t stream) override {
    drop(ranges, "discard", stream, /*comes=*/false);
  }
  void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) override {
    drop(ranges, "discard and prefetch near", stream, /*comes=*/true);
  }
  void advise(Range range, Advice advice) override {
    const std::lock_guard lock{mutex_};
    const std::string line = "advise " + memory_.units(range) +
                             (advice == Advice::kPreferNear ? " near" : " something else");
    call(line);
    tell(order_.touch(line, {range, Effect::kAdvise}));
  }

  void begin_label(const std::string& name) override { note("begin " + name); }
  void end_label() override { note("end"); }

 private:
  void drop(std::span<const Range> ranges, const std::string& what, cudaStream_t stream,
            bool comes) {
    const std::lock_guard lock{mutex_};
    const std::string line = of(stream) + what + memory_.units(ranges);
    call(line);
    std::vector<HappensBefore::Access> accesses;
    for (const Range& range : ranges) accesses.push_back({range, Effect::kWrite});
    const std::vector<Range> dropped{ranges.begin(), ranges.end()};
    give(stream, line, accesses, [this, dropped, comes] {
      memory_.discard(dropped);
      for (const Range& range : dropped) {
        if (comes) memory_.bring_near(range);
      }
    });
  }
  std::byte* take(const std::string& kind, Bytes size) {
    const std::lock_guard lock{mutex_};
    note_locked("allocate " + kind + " " + to_string(size));
    std::byte* const address = memory_.take(kind, size);
    order_.allocate({address, size.count()});
    ++live_;
    return address;
  }
  void give_back(std::byte* address) noexcept {
    const std::lock_guard lock{mutex_};
    tell(order_.free(address, "the end of " + memory_.place(address)));
    memory_.give_back(address);
    --live_;
  }
  void end() noexcept {
    const std::lock_guard lock{mutex_};
    --live_;
  }

  const CudaFacts facts_;
};

}  // namespace spillway::um
