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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/um/cuda/happens_before.h"
#include "um/bytes.h"
#include "um/cuda/driver/check.h"
#include "um/hints.h"

namespace spillway::um {

/// Streams and events without a GPU. Events fire in order on each stream, when fire_next() says so.
/// Handles count from 1.
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
    std::uint64_t held = 0;  ///< as its user counts: events that did not fire at once
  };
  struct Event {
    std::string stream;
    std::uint64_t recorded = 0;
    std::uint64_t fired = 0;
    WorkClock after;  ///< what is done when it has fired, as it was last recorded
    Nanoseconds time{0};
  };

  /// The second of a name is "name 2".
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
  /// Those that an event is to fire on.
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

/// What streams were given while they were captured, and what a launch of it does: on streams of
/// its own, as a graph's work has no order but its edges. Handles count from 1.
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
  /// Work that is kept; `line` and `accesses` are for its order, `act` does it.
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
  /// True when it is captured: `stream` is, or joins since `event` was.
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
  /// Ends the capture; a launch works on streams that `streams` makes for it.
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
    std::vector<cudaStream_t> streams;  // the origin first
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

/// RAM that stands for a GPU's, keeps aside what has left it, and says in words what an address is:
/// "slab 1+2" is two units of 2 MiB of the memory of kind "slab" from its second unit on.
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

  /// What pages hold leaves with them: until it is brought back, they hold NaNs.
  void send_far(Range range) {
    for_each_unit(range, [&](Range unit) {
      if (far_.contains(unit.data())) return;
      far_.emplace(unit.data(), std::vector<std::byte>{unit.begin(), unit.end()});
      drop(unit);
    });
  }
  void bring_near(Range range) {
    for_each_unit(range, [&](Range unit) {
      const auto found = far_.find(unit.data());
      if (found == far_.end()) return;
      std::ranges::copy(found->second, unit.begin());
      far_.erase(found);
    });
  }
  /// As the host sees it, which may use what is far: `act` finds and changes it.
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
  /// What pages hold is lost, near and far.
  void discard(std::span<const Range> ranges) {
    for (const Range& range : ranges) {
      for_each_unit(range, [&](Range unit) {
        far_.erase(unit.data());
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
  std::map<std::byte*, std::vector<std::byte>> far_;  // by unit: what it held when it left
};

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
