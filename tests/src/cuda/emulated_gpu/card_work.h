#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card_settings.h"
#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {

enum class WorkKind { kCompute, kMove, kMark };

/// A vector clock: how much of each lane happens before something.
using WorkClock = std::vector<std::uint32_t>;
void join(WorkClock& clock, const WorkClock& other);

/// A piece of work on its way through a stream or a graph.
struct WorkNode : std::enable_shared_from_this<WorkNode> {
  std::shared_ptr<const Work> work;  ///< null: orders other work alone
  WorkKind kind = WorkKind::kMark;
  int device = 0;
  std::size_t lane = 0;  ///< of the vector clocks: a stream's
  std::vector<std::shared_ptr<WorkNode>> after;
  std::vector<WorkNode*> next;
  std::size_t missing = 0;  ///< how many of `after` are not done
  bool is_done = false;
  std::chrono::steady_clock::time_point ended;
  WorkClock clock;
  std::size_t index = 0;  ///< in its graph
};
using WorkNodePtr = std::shared_ptr<WorkNode>;

/// Work that is captured, in the order of the calls; `after` names nodes of the same capture.
struct Capture {
  std::vector<WorkNodePtr> nodes;
  std::set<CUstream_st*> streams;
  std::thread::id thread;   ///< that began it
  bool is_broken = false;   ///< invalidated: all that is left to do with it is to end it
  bool has_failed = false;  ///< a call of its thread failed
  bool has_ended = false;
  bool is_relaxed = false;
};

}  // namespace spillway::emulated

/// Streams, events and graphs, by the names in CUDA's headers.
struct CUstream_st {
  int device = 0;
  std::size_t lane = 0;
  bool waits_for_legacy = false;  ///< made without cudaStreamNonBlocking
  spillway::emulated::WorkNodePtr tail;
  std::shared_ptr<spillway::emulated::Capture> capture;
  std::vector<spillway::emulated::WorkNodePtr> captured;  ///< what the next captured work is after
};
struct CUevent_st {
  int device = 0;
  bool has_time = true;
  spillway::emulated::WorkNodePtr node;  ///< null: never recorded
  std::shared_ptr<spillway::emulated::Capture> capture;
  std::vector<spillway::emulated::WorkNodePtr> captured;
  int queries = 0;
};
struct CUgraph_st {
  std::vector<spillway::emulated::WorkNodePtr> nodes;
};
struct CUgraphExec_st {
  int device = 0;
  std::vector<spillway::emulated::WorkNodePtr> nodes;
  spillway::emulated::WorkNodePtr last;  ///< the end of the last launch
};

namespace spillway::emulated {

/// Orders and computes work: when, WorkOrder says.
///
/// Thread safety: none; Card's mutex guards it. Work is computed by the thread that calls.
class WorkQueue {
 public:
  /// `compute` computes a node's work.
  WorkQueue(const CardSettings& settings, std::function<void(WorkNode&)> compute);

  /// Enqueues or captures work.
  void add(CUstream_st& stream, WorkKind kind, std::shared_ptr<const Work> work);
  /// Enqueues the work of a graph, behind the stream's and before its later work.
  void add_graph(CUstream_st& stream, CUgraphExec_st& graph);
  /// Makes the stream's later work wait for `node`.
  void add_wait(CUstream_st& stream, const WorkNodePtr& node);

  /// Computes what `node` needs, and it, as the order says; the host then knows that it is done.
  void wait(const WorkNodePtr& node);
  /// Computes all enqueued work; the host then knows that it is done.
  void wait_for_all();
  [[nodiscard]] std::size_t make_lane() { return lanes_++; }

 private:
  void link(const WorkNodePtr& node, std::vector<WorkNodePtr> after);
  void enqueue(CUstream_st& stream, const WorkNodePtr& node, std::vector<WorkNodePtr> after);
  void begin_by_order(const WorkNodePtr& node);
  void demand(const WorkNodePtr& node);
  void compute_one(const WorkNodePtr& node);
  void compute_by_chance();
  void compute_all();
  [[nodiscard]] bool is_early(WorkKind kind) const;
  [[nodiscard]] WorkNodePtr make_end(CUstream_st& stream);

  const WorkOrder order_;
  std::mt19937 chance_;
  std::function<void(WorkNode&)> compute_;
  std::vector<WorkNodePtr> ready_;  // all that they are after is done; in the order of the calls
  std::unordered_set<WorkNodePtr> pending_;  // enqueued and not done, which the queue keeps alive
  std::size_t lanes_ = 0;
  WorkClock all_;   // all work so far
  WorkClock seen_;  // what the host knows to be done
};

}  // namespace spillway::emulated
