// CUDA's runtime for the emulated GPU: streams, events and graphs. Compiled with NVIDIA's headers.
#include <cuda_runtime_api.h>

#include <memory>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card.h"
#include "tests/src/cuda/emulated_gpu/emulated_call.h"

namespace spillway::emulated {

void expect_no_capture(const char* what) {
  if (card_thread().capture_mode == cudaStreamCaptureModeRelaxed) return;
  for (const CUstream_st* stream : card().streams) {
    if (!stream->capture || stream->capture->is_relaxed || stream->capture->is_broken) continue;
    stream->capture->is_broken = true;
    report_mistake(std::string{what} + " while a stream is captured");
  }
}

namespace {

// Returns the error for a stream that is captured or does not exist.
cudaError_t expect_idle_stream(CUstream_st* stream, const char* what) {
  if (stream == nullptr) {
    report_mistake(std::string{what} + ": the stream does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (!stream->capture) return cudaSuccess;
  stream->capture->is_broken = true;
  report_mistake(std::string{what} + ": the stream is captured");
  return failed(cudaErrorStreamCaptureUnsupported);
}

cudaError_t expect_event(CUevent_st* event, const char* what) {
  if (card().events.count(event) != 0) return cudaSuccess;
  report_mistake(std::string{what} + ": the event does not exist");
  return failed(cudaErrorInvalidResourceHandle);
}

// Events that a host waits for must not belong to a capture.
cudaError_t expect_plain_event(CUevent_st* event, const char* what) {
  if (const cudaError_t error = expect_event(event, what); error != cudaSuccess) return error;
  expect_no_capture(what);
  if (!event->capture) return cudaSuccess;
  report_mistake(std::string{what} + ": the event was recorded in a capture");
  return failed(cudaErrorCapturedEvent);
}

std::size_t count_reached(const std::vector<WorkNodePtr>& ends) {
  std::unordered_set<WorkNode*> reached;
  std::vector<WorkNodePtr> open = ends;
  while (!open.empty()) {
    const WorkNodePtr node = open.back();
    open.pop_back();
    if (!reached.insert(node.get()).second) continue;
    open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return reached.size();
}

cudaError_t end_capture(CUstream_st& stream, cudaGraph_t* graph) {
  Card& gpu = card();
  *graph = nullptr;
  if (!stream.capture) return failed(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream.capture;
  const std::vector<WorkNodePtr> ends = stream.captured;
  capture->has_ended = true;
  for (CUstream_st* other : capture->streams) {
    if (gpu.streams.count(other) == 0) continue;
    other->capture = nullptr;
    other->captured.clear();
  }
  if (capture->is_broken) return failed(cudaErrorStreamCaptureInvalidated);
  if (count_reached(ends) != capture->nodes.size()) {
    // After a failed call a program ends a capture wherever it is.
    if (!capture->has_failed) report_mistake("a capture ends with streams that were not joined");
    return failed(cudaErrorStreamCaptureUnjoined);
  }
  *graph = new CUgraph_st{capture->nodes};
  gpu.graphs.insert(*graph);
  return cudaSuccess;
}

cudaError_t wait_for_captured(CUstream_st& stream, const CUevent_st& event) {
  if (stream.capture && stream.capture != event.capture) {
    stream.capture->is_broken = true;
    report_mistake("a capture waits for an event of another capture");
    return failed(cudaErrorStreamCaptureMerge);
  }
  if (event.capture->has_ended) {
    report_mistake("a stream waits for an event that was last recorded in a capture");
    return failed(cudaErrorCapturedEvent);
  }
  if (event.capture->is_broken) return failed(cudaErrorStreamCaptureInvalidated);
  if (!stream.capture) {  // the stream joins the capture
    stream.capture = event.capture;
    stream.capture->streams.insert(&stream);
    stream.captured.clear();
  }
  stream.captured.insert(stream.captured.end(), event.captured.begin(), event.captured.end());
  return cudaSuccess;
}

}  // namespace
}  // namespace spillway::emulated

namespace emulated = spillway::emulated;
using emulated::card;
using emulated::card_thread;
using emulated::EmulatedCall;
using emulated::failed;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const EmulatedCall call{"cudaStreamCreateWithFlags"};
  if (call.error() != cudaSuccess) return call.error();
  emulated::make_context();
  auto made = std::make_unique<CUstream_st>();
  made->device = card_thread().device;
  made->lane = card().queue.make_lane();
  made->waits_for_legacy = (flags & cudaStreamNonBlocking) == 0;
  *stream = made.get();
  card().streams.insert(made.release());
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const EmulatedCall call{"cudaStreamDestroy"};
  if (call.error() != cudaSuccess) return call.error();
  if (card().streams.erase(stream) == 0) {
    emulated::report_mistake("a stream is destroyed that does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture) emulated::report_mistake("a stream is destroyed while it is captured");
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const EmulatedCall call{"cudaStreamSynchronize"};
  if (call.error() != cudaSuccess) return call.error();
  CUstream_st* const stream = emulated::find_stream(handle);
  const cudaError_t error = emulated::expect_idle_stream(stream, "cudaStreamSynchronize");
  if (error == cudaSuccess) card().queue.wait(stream->tail);
  return error;
}
cudaError_t cudaDeviceSynchronize() {
  const EmulatedCall call{"cudaDeviceSynchronize"};
  if (call.error() != cudaSuccess) return call.error();
  emulated::make_context();
  emulated::expect_no_capture("cudaDeviceSynchronize");
  card().queue.wait_for_all();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const EmulatedCall call{"cudaStreamIsCapturing"};
  if (call.error() != cudaSuccess) return call.error();
  const CUstream_st* const stream = emulated::find_stream(handle);
  if (stream == nullptr) return failed(cudaErrorInvalidResourceHandle);
  *status = emulated::is_invalidated(*stream) ? cudaStreamCaptureStatusInvalidated
            : stream->capture                 ? cudaStreamCaptureStatusActive
                                              : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const EmulatedCall call{"cudaStreamBeginCapture"};
  if (call.error() != cudaSuccess) return call.error();
  if (card().streams.count(handle) == 0) return failed(cudaErrorStreamCaptureUnsupported);
  if (handle->capture) return failed(cudaErrorIllegalState);
  handle->capture = std::make_shared<emulated::Capture>();
  handle->capture->thread = std::this_thread::get_id();
  handle->capture->is_relaxed = mode == cudaStreamCaptureModeRelaxed;
  handle->capture->streams.insert(handle);
  handle->captured.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const EmulatedCall call{"cudaStreamEndCapture"};
  if (card().streams.count(stream) == 0) return failed(cudaErrorInvalidResourceHandle);
  // The capture ends even if the call fails.
  if (call.error() != cudaSuccess && stream->capture) stream->capture->is_broken = true;
  const cudaError_t error = emulated::end_capture(*stream, graph);
  return call.error() != cudaSuccess ? failed(call.error()) : error;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, card_thread().capture_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  const EmulatedCall call{"cudaGraphInstantiate"};
  if (call.error() != cudaSuccess) return call.error();
  if (card().graphs.count(graph) == 0) return failed(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{card_thread().device, graph->nodes, nullptr};
  card().executables.insert(*executable);
  emulated::count("nodes of graphs", graph->nodes.size());
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const EmulatedCall call{"cudaGraphDestroy"};
  if (call.error() != cudaSuccess) return call.error();
  if (card().graphs.erase(graph) == 0) {
    emulated::report_mistake("a graph is destroyed that does not exist");
    return failed(cudaErrorInvalidValue);
  }
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const EmulatedCall call{"cudaGraphExecDestroy"};
  if (call.error() != cudaSuccess) return call.error();
  if (card().executables.erase(graph) == 0) {
    emulated::report_mistake("a graph is destroyed that does not exist");
    return failed(cudaErrorInvalidValue);
  }
  if (graph->last && !graph->last->is_done) {
    emulated::report_mistake("a graph is destroyed while it runs");
  }
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const EmulatedCall call{"cudaGraphLaunch"};
  if (call.error() != cudaSuccess) return call.error();
  if (card().executables.count(graph) == 0 || card().streams.count(stream) == 0) {
    emulated::report_mistake("a launch of a graph, or on a stream, that does not exist");
    return failed(cudaErrorInvalidValue);
  }
  if (const cudaError_t error = emulated::expect_idle_stream(stream, "cudaGraphLaunch");
      error != cudaSuccess) {
    return error;
  }
  emulated::count("launches of graphs");
  card().queue.add_graph(*stream, *graph);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const EmulatedCall call{"cudaEventCreateWithFlags"};
  if (call.error() != cudaSuccess) return call.error();
  emulated::make_context();
  auto made = std::make_unique<CUevent_st>();
  made->device = card_thread().device;
  made->has_time = (flags & cudaEventDisableTiming) == 0;
  *event = made.get();
  card().events.insert(made.release());
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const EmulatedCall call{"cudaEventDestroy"};
  if (call.error() != cudaSuccess) return call.error();
  if (card().events.erase(event) == 0) {
    emulated::report_mistake("an event is destroyed that does not exist");
    return failed(cudaErrorInvalidResourceHandle);
  }
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const EmulatedCall call{"cudaEventRecord"};
  if (call.error() != cudaSuccess) return call.error();
  if (const auto error = emulated::expect_event(event, "cudaEventRecord"); error != cudaSuccess) {
    return error;
  }
  CUstream_st* const stream = emulated::find_stream(handle);
  if (stream == nullptr || stream->device != event->device) {
    emulated::report_mistake("an event is recorded on a stream of another device, or on none");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (emulated::is_invalidated(*stream)) return failed(cudaErrorStreamCaptureInvalidated);
  event->capture = stream->capture;
  event->captured = stream->captured;
  event->node = nullptr;
  event->queries = 0;
  if (stream->capture) return cudaSuccess;
  card().queue.add(*stream, emulated::WorkKind::kMark, nullptr);
  event->node = stream->tail;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned /*flags*/) {
  const EmulatedCall call{"cudaStreamWaitEvent"};
  if (call.error() != cudaSuccess) return call.error();
  if (const auto error = emulated::expect_event(event, "cudaStreamWaitEvent");
      error != cudaSuccess) {
    return error;
  }
  CUstream_st* const stream = emulated::find_stream(handle);
  if (stream == nullptr) return failed(cudaErrorInvalidResourceHandle);
  if (emulated::is_invalidated(*stream)) return failed(cudaErrorStreamCaptureInvalidated);
  if (event->capture) return emulated::wait_for_captured(*stream, *event);
  if (stream->capture) {
    stream->capture->is_broken = true;
    emulated::report_mistake("a captured stream waits for an event from before the capture");
    return failed(cudaErrorStreamCaptureIsolation);
  }
  if (event->node) card().queue.add_wait(*stream, event->node);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const EmulatedCall call{"cudaEventQuery"};
  if (call.error() != cudaSuccess) return call.error();
  const cudaError_t error = emulated::expect_plain_event(event, "cudaEventQuery");
  if (error != cudaSuccess || !event->node) return error;
  constexpr int kQueriesUntilDone = 3;  // the device goes on while the host asks
  if (!event->node->is_done && ++event->queries < kQueriesUntilDone) {
    return failed(cudaErrorNotReady);
  }
  card().queue.wait(event->node);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const EmulatedCall call{"cudaEventSynchronize"};
  if (call.error() != cudaSuccess) return call.error();
  const cudaError_t error = emulated::expect_plain_event(event, "cudaEventSynchronize");
  if (error == cudaSuccess) card().queue.wait(event->node);
  return error;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const EmulatedCall call{"cudaEventElapsedTime"};
  if (call.error() != cudaSuccess) return call.error();
  const bool have_nodes = from->node && to->node && from->has_time && to->has_time;
  if (!have_nodes) {
    emulated::report_mistake("the time between events that were not recorded, or without times");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (!from->node->is_done || !to->node->is_done) return failed(cudaErrorNotReady);
  *milliseconds =
      std::chrono::duration<float, std::milli>(to->node->ended - from->node->ended).count();
  return cudaSuccess;
}

}  // extern "C"
