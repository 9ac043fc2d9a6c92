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

/// How the moves of one direction are issued.
struct MoveLanes {
  std::string name;           ///< of the thread and the streams: at most 11 characters
  std::size_t streams = 1;    ///< used in turn
  std::size_t under_way = 1;  ///< moves issued before the first of them has ended
};

/// The moves of one direction. One thread makes the calls of the driver, which may take as long as
/// the move; another waits for the events behind them and tells that moves have ended, in the order
/// of their issue. With no more moves under way than streams, each call meets an idle stream: on a
/// busy one the driver puts a prefetch off to a thread of its own.
///
/// Its end waits for all moves. Thread safety: safe to call from several threads at once.
class MoveQueue {
 public:
  /// Makes the call of a move on a stream. May throw: then the move has failed.
  using Call = std::function<void(cudaStream_t)>;

  MoveQueue(CudaApi& api, const MoveLanes& lanes);

  /// Returns before the move is issued: its number, from 0. Moves get on in the order of their
  /// numbers.
  std::uint64_t enqueue(Call call, Completion done);
  /// Lets what `streams` are given from now on wait for the move of this number. Blocks until it is
  /// issued. One whose call failed is not waited for. Throws: CudaError.
  void make_wait(ComputeStreams& streams, std::uint64_t number);

 private:
  void issue(std::uint64_t number, const Call& call, const Completion& done);
  void end(std::size_t lane, std::exception_ptr failure, const Completion& done);

  CudaApi& api_;
  std::vector<StreamHandle> streams_;
  std::vector<EventHandle> events_;  // one for each move under way

  std::mutex mutex_;  // guards what follows; a move's event is recorded anew when it has ended
  std::condition_variable changed_;
  std::uint64_t given_ = 0;  // moves: how many of them are enqueued, issued, have ended
  std::uint64_t issued_ = 0;
  std::uint64_t ended_ = 0;

  Engine watching_;  // the engines last: their jobs use the others
  Engine issuing_;   // and its jobs the one before
};

}  // namespace spillway::um
