#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/um/cuda/happens_before.h"
#include "um/bytes.h"

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

}  // namespace spillway::um
