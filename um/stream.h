#pragma once

#include <functional>
#include <memory>

#include "um/event.h"

namespace spillway::um {

/// A queue of work that runs in order, beside the caller and beside other streams.
///
/// Its end waits for all its work; a failure that no synchronize() has thrown is dropped.
///
/// Thread safety: safe to call from several threads at once.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Appends `work`; returns before it runs. When work throws, later work is skipped (events still
  /// fire) and synchronize() throws what it threw.
  virtual void enqueue(std::function<void()> work) = 0;

  /// An event that fires when all work enqueued so far has ended. Shared: the stream fires it, any
  /// number of waiters keep it.
  [[nodiscard]] virtual std::shared_ptr<const Event> record() = 0;

  /// Later work of this stream starts only after `event` has fired.
  virtual void wait(std::shared_ptr<const Event> event) = 0;

  /// Blocks until all work enqueued so far has ended. Throws: the first exception of that work,
  /// once.
  virtual void synchronize() = 0;
};

}  // namespace spillway::um
