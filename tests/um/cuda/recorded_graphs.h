#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/um/cuda/happens_before.h"
#include "tests/um/cuda/recorded_streams.h"
#include "um/cuda/driver/check.h"

namespace spillway::um {

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

}  // namespace spillway::um
