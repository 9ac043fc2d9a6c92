#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "um/bytes.h"

namespace spillway::um {

/// A queue for work of a step. Work in one lane runs in order, concurrently with the other lanes.
enum class Lane : std::uint8_t {
  kCompute,  ///< the stream that owns the lanes
  kIn,       ///< copies into near memory
  kOut       ///< copies out of near memory
};
inline constexpr std::size_t kLanes = 3;

/// Submits a whole step ahead of the device, which alone keeps its order; the host does not wait in
/// between. The step can be captured and repeated as one piece (a CUDA graph).
///
/// run() and keep() call `give`, which submits copies by copy(), kernels to the stream itself, and
/// the dependencies between them. The submitted work begins after the stream's earlier work. Later
/// work of the stream begins after all of it.
///
/// The stream outlives it.
///
/// Thread safety: none; called by work of the stream. Throws: Error when the driver fails; then no
/// submitted work is in flight.
class Lanes {
 public:
  /// A point in a lane, valid until the next run() or keep().
  using Mark = std::uint32_t;

  virtual ~Lanes() = default;

  virtual void run(const std::function<void()>& give) = 0;
  /// Captures the submitted work instead of running it, and drops what was captured before.
  virtual void keep(const std::function<void()>& give) = 0;
  [[nodiscard]] virtual bool has_kept() const = 0;
  /// Runs the captured work once more. Requires: has_kept().
  virtual void run_kept() = 0;

  // Called within `give`:

  virtual void copy(Lane lane, std::span<const std::byte> from, std::byte* to) = 0;
  [[nodiscard]] virtual Mark mark(Lane lane) = 0;
  /// Makes later work of `lane` wait until the lane of `mark` has reached it.
  virtual void wait(Lane lane, Mark mark) = 0;

  /// Returns when the lane reached `mark`, since the beginning. Requires: `mark` was made in a
  /// run() with all its work ended.
  [[nodiscard]] virtual Nanoseconds time(Mark mark) = 0;
};

/// A point in a Stream's work. Fires once, when all earlier work has ended.
///
/// Thread safety: safe to call from several threads at once.
class Event {
 public:
  virtual ~Event() = default;
  [[nodiscard]] virtual bool has_fired() const = 0;
  /// Blocks the caller until the event has fired.
  virtual void wait() const = 0;
};

/// Called when work has ended, with the time at which it ended.
using Notice = std::function<void(std::chrono::steady_clock::time_point)>;

/// A queue of work that runs in order, concurrently with the caller and other streams.
///
/// Work on a host computes; work on a GPU submits to the GPU and ends when the GPU has done it.
/// "The work so far" is all work enqueued so far. Called by work itself, it is what that work has
/// done or submitted so far.
///
/// The destructor waits for all work and drops a failure that synchronize() has not thrown.
///
/// Thread safety: safe to call from several threads at once.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Appends `work` and returns before it runs. When work throws, later work is skipped (events
  /// still fire) and synchronize() rethrows.
  virtual void enqueue(std::function<void()> work) = 0;

  /// Returns an event that fires when all work so far has ended. Shared by the stream, which fires
  /// it, and any number of waiters.
  [[nodiscard]] virtual std::shared_ptr<const Event> record() = 0;

  /// Delays later work of this stream until `event` has fired.
  virtual void wait(std::shared_ptr<const Event> event) = 0;

  /// Blocks until all work so far has ended and its notices have been called. Throws: the first
  /// exception of that work, once.
  virtual void synchronize() = 0;

  /// Calls `then` once when the work so far has ended, even if it failed. Notices are called one at
  /// a time in the order of the calls. `then` must be quick and must not wait for this stream;
  /// synchronize() rethrows its exceptions.
  virtual void notify(Notice then) = 0;

  /// Returns whether a notice is free: the work itself calls it, at once.
  [[nodiscard]] virtual bool has_free_notices() const { return false; }

  /// Returns lanes with this stream as their compute lane. Returns null on a host, which cannot
  /// submit work ahead of its operands.
  [[nodiscard]] virtual std::unique_ptr<Lanes> make_lanes() { return nullptr; }

  /// Copies near memory into ordinary memory after the work so far, and waits for the copy.
  /// Requires: called by work of this stream.
  virtual void read(std::span<const std::byte> near, std::span<std::byte> into) = 0;

  /// Copies ordinary memory into near memory after the work so far; `from` must not change until
  /// the copy has ended. Requires: called by work of this stream.
  virtual void write(std::span<const std::byte> from, std::span<std::byte> near) = 0;

  /// Labels later submitted work as `name` for profilers; an empty name ends the label. Requires:
  /// called by work of this stream.
  virtual void label(std::string_view /*name*/) {}
};

/// A stream of a program that uses our memory and submits its work itself. The device outlives it
/// and its events.
///
/// Thread safety: that of the program's stream.
class ProgramStream {
 public:
  virtual ~ProgramStream() = default;

  /// Returns whether record() can drop content.
  [[nodiscard]] virtual bool can_discard() const = 0;
  /// Returns an event that fires when the work so far has ended and the content of `dead` has been
  /// dropped, which later work does not wait for. Requires: `dead` is empty, or whole pages of a
  /// slab if can_discard(). Throws: Error, also while the stream is captured.
  [[nodiscard]] virtual std::unique_ptr<const Event> record(std::span<std::byte> dead) = 0;
  /// Calls `call`, in which Hints::lets_launches_wait() also holds for later work of this stream.
  /// Does nothing while the stream is captured.
  virtual void join(const std::function<void()>& call) = 0;
};

/// Called once when a move has ended, by the thread that ended it. The argument is null on success.
/// Must return quickly, must not throw and must not touch managed memory.
using Completion = std::function<void(std::exception_ptr)>;

}  // namespace spillway::um
