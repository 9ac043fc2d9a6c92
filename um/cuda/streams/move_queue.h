#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "um/cuda/driver/api.h"
#include "um/cuda/streams/cuda_stream.h"
#include "um/stream.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// Options for the moves of one direction.
struct MoveLanes {
  std::string name;           ///< for threads and streams: at most 11 characters
  std::size_t streams = 1;    ///< used round-robin
  std::size_t under_way = 1;  ///< the most moves in flight
};

/// The moves of one direction. One thread makes the driver calls, which may block during a move.
/// Another thread waits for their events and reports ended moves in the order of issue. With at
/// most as many moves in flight as streams, each call finds an idle stream: on a busy one, the
/// driver defers a prefetch to its own thread.
///
/// The destructor waits for all moves. Thread safety: several threads may call it concurrently.
class MoveQueue {
 public:
  /// Makes the driver call of a move on a stream. An exception means that the move failed.
  using Call = std::function<void(cudaStream_t)>;

  MoveQueue(CudaApi& api, const MoveLanes& lanes);

  /// Enqueues a move and returns its number, from 0, before it is issued. Moves are issued in the
  /// order of their numbers.
  std::uint64_t enqueue(Call call, Completion done);
  /// Delays later work of `streams` until move `number` has ended; blocks until it is issued. A
  /// move with a failed call is not waited for. Throws: CudaError.
  void make_wait(ComputeStreams& streams, std::uint64_t number);

 private:
  void issue(std::uint64_t number, const Call& call, const Completion& done);
  void end(std::size_t lane, std::exception_ptr failure, const Completion& done);

  CudaApi& api_;
  std::vector<StreamHandle> streams_;
  std::vector<EventHandle> events_;  // one per move in flight

  std::mutex mutex_;  // guards the members below; a slot's event is reused when its move has ended
  std::condition_variable changed_;
  std::uint64_t given_ = 0;  // numbers of moves enqueued, issued and ended
  std::uint64_t issued_ = 0;
  std::uint64_t ended_ = 0;

  Engine watching_;  // last: the engines' jobs use the other members
  Engine issuing_;   // its jobs use `watching_`, too
};

}  // namespace spillway::um
