#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/um/cuda/happens_before.h"
#include "um/bytes.h"
#include "um/cuda/driver/check.h"
#include "um/hints.h"

namespace spillway::um {

/// Streams and events without a GPU. Events fire in order on each stream, by fire_next(). Handles
/// count from 1.
///
/// Thread safety: none.
class RecordedStreams {
 public:
  struct Recorded {
    std::size_t event;
    std::uint64_t number;
  };
  struct Stream {
    std::string name;
    std::deque<Recorded> pending;
    std::uint64_t held = 0;  ///< for the user of this class: events that did not fire at once
  };
  struct Event {
    std::string stream;
    std::uint64_t recorded = 0;
    std::uint64_t fired = 0;
    WorkClock after;  ///< the work done when the latest record fires
    Nanoseconds time{0};
  };

  /// Names the second stream of a name "name 2".
  [[nodiscard]] cudaStream_t make_stream(const std::string& name) {
    const auto same = std::ranges::count_if(
        streams_, [&](const Stream& each) { return each.name.starts_with(name); });
    streams_.push_back({.name = same == 0 ? name : name + " " + std::to_string(same + 1)});
    return reinterpret_cast<cudaStream_t>(streams_.size());
  }
  [[nodiscard]] cudaEvent_t make_event() {
    events_.emplace_back();
    return reinterpret_cast<cudaEvent_t>(events_.size());
  }

  static std::size_t index(cudaStream_t stream) {
    return reinterpret_cast<std::uintptr_t>(stream) - 1;
  }
  static std::size_t index(cudaEvent_t event) {
    return reinterpret_cast<std::uintptr_t>(event) - 1;
  }
  [[nodiscard]] Stream& of(cudaStream_t stream) { return streams_.at(index(stream)); }
  [[nodiscard]] Event& of(cudaEvent_t event) { return events_.at(index(event)); }
  [[nodiscard]] Stream& named(const std::string& name) {
    return *std::ranges::find(streams_, name, &Stream::name);
  }
  /// Returns the streams with a pending event.
  [[nodiscard]] std::vector<Stream*> busy() {
    std::vector<Stream*> found;
    for (Stream& stream : streams_) {
      if (!stream.pending.empty()) found.push_back(&stream);
    }
    return found;
  }

  void record(cudaEvent_t event, cudaStream_t stream, WorkClock after) {
    Event& recorded = of(event);
    recorded.stream = of(stream).name;
    recorded.after = std::move(after);
    of(stream).pending.push_back({.event = index(event), .number = ++recorded.recorded});
  }
  /// Requires: an event is pending on `stream`.
  void fire_next(Stream& stream, Nanoseconds time) {
    const Recorded next = stream.pending.front();
    stream.pending.pop_front();
    Event& event = events_.at(next.event);
    event.fired = next.number;
    event.time = time;
  }

 private:
  std::deque<Stream> streams_;
  std::deque<Event> events_;
};

/// Captured work of streams, and its launches. A launch runs on streams of its own, since a graph's
/// work is ordered only by its edges. Handles count from 1.
///
/// Thread safety: none.
class RecordedGraphs {
 public:
  using Accesses = std::vector<HappensBefore::Access>;
  using Tell = std::function<void(const std::vector<HappensBefore::Conflict>&)>;

  void begin(cudaStream_t origin) {
    check(capture_ ? cudaErrorIllegalState : cudaSuccess);
    capture_.emplace().streams.push_back(origin);
  }
  [[nodiscard]] bool is_captured(cudaStream_t stream) const {
    return capture_ && std::ranges::count(capture_->streams, stream) > 0;
  }
  /// Captures work: `line` and `accesses` describe it, `act` does it.
  void give(cudaStream_t stream, std::string line, Accesses accesses, std::function<void()> act) {
    capture_->nodes.push_back({.kind = Kind::kWork,
                               .stream = stream,
                               .line = std::move(line),
                               .accesses = std::move(accesses),
                               .act = std::move(act)});
  }
  void record(cudaEvent_t event, cudaStream_t stream) {
    std::erase(capture_->events, event);
    capture_->events.push_back(event);
    capture_->nodes.push_back({.kind = Kind::kRecord, .stream = stream, .event = event});
  }
  /// Returns true when the wait is captured, because `stream` is or because `event` was captured.
  [[nodiscard]] bool wait(cudaStream_t stream, cudaEvent_t event) {
    if (!capture_) return false;
    if (std::ranges::count(capture_->events, event) == 0) {
      check(is_captured(stream) ? cudaErrorStreamCaptureIsolation : cudaSuccess);
      return false;
    }
    if (!is_captured(stream)) capture_->streams.push_back(stream);
    capture_->nodes.push_back({.kind = Kind::kWait, .stream = stream, .event = event});
    return true;
  }
  /// Ends the capture. A launch uses streams made by `streams`.
  cudaGraphExec_t end(RecordedStreams& streams) {
    Graph graph{.capture = *std::exchange(capture_, std::nullopt), .own = {}};
    for (auto* const each : graph.capture.streams) {
      graph.own[each] = RecordedStreams::index(streams.make_stream("graph"));
    }
    graphs_.push_back(std::move(graph));
    return reinterpret_cast<cudaGraphExec_t>(graphs_.size());
  }
  void abandon() { capture_.reset(); }

  void launch(cudaGraphExec_t handle, cudaStream_t stream, HappensBefore& order,
              const Tell& tell) const {
    const Graph& graph = graphs_.at(reinterpret_cast<std::uintptr_t>(handle) - 1);
    const std::size_t origin = graph.own.at(graph.capture.streams.front());
    order.wait(origin, order.record(RecordedStreams::index(stream)));
    std::map<cudaEvent_t, WorkClock> events;
    for (const Node& node : graph.capture.nodes) {
      const std::size_t own = graph.own.at(node.stream);
      if (node.kind == Kind::kRecord) {
        events[node.event] = order.record(own);
      } else if (node.kind == Kind::kWait) {
        order.wait(own, events.at(node.event));
      } else {
        tell(order.give(own, node.line, node.accesses));
        node.act();
      }
    }
    for (const auto& [captured, own] : graph.own) {
      const bool is_joined = order.record(origin).covers(order.record(own));
      check(is_joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    }
    order.wait(RecordedStreams::index(stream), order.record(origin));
  }

 private:
  enum class Kind : std::uint8_t { kWork, kRecord, kWait };
  struct Node {
    Kind kind;
    cudaStream_t stream;
    cudaEvent_t event = nullptr;
    std::string line;
    Accesses accesses;
    std::function<void()> act;
  };
  struct Capture {
    std::vector<cudaStream_t> streams;  // starts with the origin
    std::vector<cudaEvent_t> events;
    std::vector<Node> nodes;
  };
  struct Graph {
    Capture capture;
    std::map<cudaStream_t, std::size_t> own;  // by captured stream
  };

  std::optional<Capture> capture_;
  std::deque<Graph> graphs_;
};

/// RAM in place of a GPU's memory. Keeps the content of pages that have moved far, and describes
/// addresses: "slab 1+2" is two units of 2 MiB from the second unit of the memory "slab".
class RecordedMemory {
 public:
  std::byte* take(const std::string& kind, Bytes size) {
    const std::size_t rounded = (size.count() + kUnit - 1) / kUnit * kUnit;
    std::unique_ptr<std::byte, Free> memory{
        static_cast<std::byte*>(std::aligned_alloc(kUnit, rounded))};
    std::byte* const address = memory.get();
    allocations_[address] = {.kind = kind, .size = rounded, .memory = std::move(memory)};
    return address;
  }
  void give_back(std::byte* address) noexcept { allocations_.erase(address); }
  /// Returns the most bytes that hints have had near at a time.
  [[nodiscard]] Bytes near_peak() const { return Bytes{near_peak_ * kUnit}; }

  /// Moves the content of pages far; until it returns, the pages hold NaNs.
  void send_far(Range range) {
    for_each_unit(range, [&](Range unit) {
      near_.erase(unit.data());
      if (far_.contains(unit.data())) return;
      far_.emplace(unit.data(), std::vector<std::byte>{unit.begin(), unit.end()});
      drop(unit);
    });
  }
  void bring_near(Range range) {
    for_each_unit(range, [&](Range unit) {
      near_.insert(unit.data());
      near_peak_ = std::max(near_peak_, near_.size());
      const auto found = far_.find(unit.data());
      if (found == far_.end()) return;
      std::ranges::copy(found->second, unit.begin());
      far_.erase(found);
    });
  }
  /// Lets the host use memory that may be far: `act` reads and writes it.
  void use_on_host(std::span<const Range> ranges, const std::function<void()>& act) {
    std::vector<std::pair<Range, std::vector<std::byte>*>> seen;
    for (auto& [address, content] : far_) {
      const Range unit{address, content.size()};
      const std::less<> before;
      if (std::ranges::any_of(ranges, [&](Range range) {
            return before(range.data(), address + unit.size()) &&
                   before(address, range.data() + range.size());
          })) {
        seen.emplace_back(unit, &content);
      }
    }
    for (const auto& [unit, content] : seen) std::ranges::copy(*content, unit.begin());
    act();
    for (const auto& [unit, content] : seen) {
      content->assign(unit.begin(), unit.end());
      drop(unit);
    }
  }
  /// Drops the content of pages, near and far.
  void discard(std::span<const Range> ranges) {
    for (const Range& range : ranges) {
      for_each_unit(range, [&](Range unit) {
        far_.erase(unit.data());
        near_.erase(unit.data());
        drop(unit);
      });
    }
  }

  [[nodiscard]] std::string place(const std::byte* address) const {
    for (const auto& [begin, allocation] : allocations_) {
      const std::less<> before;
      if (before(address, begin) || !before(address, begin + allocation.size)) continue;
      const auto offset = static_cast<std::size_t>(address - begin);
      return allocation.kind + " " +
             (offset % kUnit == 0 ? std::to_string(offset / kUnit) : std::to_string(offset) + " B");
    }
    return "elsewhere";
  }
  [[nodiscard]] std::string units(std::span<const std::byte> range) const {
    return place(range.data()) + "+" +
           (range.size() % kUnit == 0 ? std::to_string(range.size() / kUnit)
                                      : std::to_string(range.size()) + " B");
  }
  [[nodiscard]] std::string units(std::span<const Range> ranges) const {
    std::string text;
    for (const Range& range : ranges) text += " " + units(range);
    return text;
  }

 private:
  struct Free {
    void operator()(std::byte* address) const { std::free(address); }
  };
  struct Allocation {
    std::string kind;
    std::size_t size = 0;
    std::unique_ptr<std::byte, Free> memory;
  };
  static constexpr std::size_t kUnit = 2U << 20U;

  static void drop(Range unit) { std::ranges::fill(unit, std::byte{0xFF}); }  // floats: NaNs

  template <class Visit>
  static void for_each_unit(Range range, const Visit& visit) {
    for (std::size_t at = 0; at < range.size(); at += kUnit) {
      visit(range.subspan(at, std::min(kUnit, range.size() - at)));
    }
  }

  std::map<std::byte*, Allocation> allocations_;
  std::map<std::byte*, std::vector<std::byte>> far_;  // content of each unit when it left
  std::set<std::byte*> near_;                         // units
  std::size_t near_peak_ = 0;
};

/// A GPU and its driver behind RecordingApi, under the control of a test. The test sets progress
/// and failures and reads the recorded calls. Events fire at once or, after hold(), one at a time
/// by finish(), in order on each stream.
///
/// Every call declares its memory accesses, and launch() declares those of a kernel. Two accesses
/// that lack a needed order (happens_before.h) fail the test.
class RecordedGpu {
 public:
  RecordedGpu(const RecordedGpu&) = delete;
  RecordedGpu& operator=(const RecordedGpu&) = delete;

  // --- controls

  /// Makes later events fire by finish() only.
  void hold() {
    const std::lock_guard lock{mutex_};
    is_held_ = true;
  }
  /// Waits for the next recorded event on the stream `stream`, and fires it at `time` on the GPU's
  /// clock.
  void finish(const std::string& stream, Nanoseconds time = Nanoseconds{0}) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return !streams_.named(stream).pending.empty(); });
    fire_next(streams_.named(stream), time);
  }
  /// Returns whether an event is pending.
  [[nodiscard]] bool is_busy() {
    const std::lock_guard lock{mutex_};
    return !streams_.busy().empty();
  }
  /// Fires the next event of a drawn stream. Requires: is_busy().
  void finish_one(std::uint32_t draw) {
    const std::lock_guard lock{mutex_};
    const auto busy = streams_.busy();
    fire_next(*busy.at(draw % busy.size()), Clock::now() - begin_);
  }
  /// Fires all events, and later ones at once.
  void let_go() {
    const std::lock_guard lock{mutex_};
    is_held_ = false;
    for (auto* const stream : streams_.busy()) {
      while (!stream->pending.empty()) fire_next(*stream, Nanoseconds{0});
    }
  }
  /// Makes calls with `part` in their note fail with `error`.
  void fail(const std::string& part, cudaError_t error) {
    const std::lock_guard lock{mutex_};
    failing_ = part;
    failure_ = error;
  }
  /// Sets whether all streams report that they are captured.
  void capture(bool is_on) {
    const std::lock_guard lock{mutex_};
    is_capturing_ = is_on;
  }
  /// Makes queries of events fail from now on, unless `error` is cudaSuccess.
  void fail_events(cudaError_t error) {
    const std::lock_guard lock{mutex_};
    event_failure_ = error;
    changed_.notify_all();
  }
  void set_free(Bytes free) {
    const std::lock_guard lock{mutex_};
    free_ = free;
  }
  /// Adds a line of the test, such as a launch.
  void note(const std::string& line) {
    const std::lock_guard lock{mutex_};
    note_locked(line);
  }
  /// Launches a kernel of the test with its uses: "compute: make a". Runs `act` now, or at each
  /// repeat if it is captured.
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
  /// Records that the host uses memory.
  void touch(std::span<const std::byte> range, Access access) {
    const std::lock_guard lock{mutex_};
    const Effect effect = access == Access::kRead ? Effect::kRead : Effect::kWrite;
    tell(order_.touch("the host's use", {.range = range, .effect = effect}));
  }
  /// Records that the host uses memory that may be far; `act` reads and writes it.
  void use_on_host(std::span<const Range> ranges, const std::function<void()>& act) {
    const std::lock_guard lock{mutex_};
    for (const Range& range : ranges) {
      tell(order_.touch("the host's use", {.range = range, .effect = Effect::kWrite}));
    }
    memory_.use_on_host(ranges, act);
  }
  /// Makes the host wait for all streams, like cudaDeviceSynchronize(). Requires: no event is held.
  void synchronize_all() {
    const std::lock_guard lock{mutex_};
    order_.host_knows(order_.everything());
  }
  /// Calls `to` whenever a graph is launched.
  void tell_launches(std::function<void()> to) {
    const std::lock_guard lock{mutex_};
    tell_launch_ = std::move(to);
  }
  /// Reports accesses without an order to `to`; by default they fail the test.
  void tell_conflicts(std::function<void(const std::string&)> to) {
    const std::lock_guard lock{mutex_};
    tell_ = std::move(to);
  }

  // --- results

  void wait_until_noted(const std::string& line, std::ptrdiff_t times = 1) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return std::ranges::count(log_, line) >= times; });
  }
  /// Waits for `count` events on the stream `stream` since hold().
  void wait_until_recorded(const std::string& stream, std::uint64_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return streams_.named(stream).held >= count; });
  }
  /// Returns the notes since the last call.
  [[nodiscard]] std::vector<std::string> take_log() {
    const std::lock_guard lock{mutex_};
    return std::exchange(log_, {});
  }
  /// Returns the number of driver calls so far, including kernel launches.
  [[nodiscard]] std::size_t calls() {
    const std::lock_guard lock{mutex_};
    return calls_;
  }
  /// Returns the most bytes of unified memory that have been near at a time, if each hint takes
  /// effect at its call.
  [[nodiscard]] Bytes near_peak() {
    const std::lock_guard lock{mutex_};
    return memory_.near_peak();
  }
  [[nodiscard]] std::size_t live_objects() {
    const std::lock_guard lock{mutex_};
    return live_;
  }

 protected:
  RecordedGpu() = default;
  ~RecordedGpu() = default;

  using Clock = std::chrono::steady_clock;

  // These require the lock.
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
  /// Submits the work of `line` to a stream: it is done now or captured.
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
  std::mutex mutex_;  // guards the members below
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
  std::size_t live_ = 0;  // live streams, events and allocations
};

}  // namespace spillway::um
