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

/// Where work of a step goes: work of one lane runs in order, beside that of the others.
enum class Lane : std::uint8_t {
  kCompute,  ///< the stream that the lanes belong to
  kIn,       ///< copies into near memory
  kOut       ///< copies out of near memory
};
inline constexpr std::size_t kLanes = 3;

/// Work of a whole step given ahead of the device, which alone sees to its order: nothing on the
/// host waits in between. It can be kept and done again as one piece (a CUDA graph).
///
/// run() and keep() call `give`, which gives the work: copies by copy(), kernels to the stream
/// itself, and between them what waits for what. It begins when the stream's work so far has ended,
/// and what the stream is given afterwards begins when all of it has.
///
/// Thread safety: none; to be called by work of the stream. Throws: Error when the driver fails;
/// nothing of what was given is under way then. The stream outlives it.
class Lanes {
 public:
  /// A point in a lane, valid until the next run() or keep().
  using Mark = std::uint32_t;

  virtual ~Lanes() = default;

  virtual void run(const std::function<void()>& give) = 0;
  /// Keeps what is given, instead of doing it, and drops what was kept before.
  virtual void keep(const std::function<void()>& give) = 0;
  [[nodiscard]] virtual bool has_kept() const = 0;
  /// Does what was kept, once more. Requires: has_kept().
  virtual void run_kept() = 0;

  // Within `give`:

  virtual void copy(Lane lane, std::span<const std::byte> from, std::byte* to) = 0;
  [[nodiscard]] virtual Mark mark(Lane lane) = 0;
  /// Later work of `lane` begins when the lane of `mark` has come to it.
  virtual void wait(Lane lane, Mark mark) = 0;

  /// When that was, since the beginning. Requires: made in a run() of which all work has ended.
  [[nodiscard]] virtual Nanoseconds time(Mark mark) = 0;
};

/// A point in a Stream's work. Fires once, when all work before it has ended.
///
/// Thread safety: safe to call from several threads at once.
class Event {
 public:
  virtual ~Event() = default;
  [[nodiscard]] virtual bool has_fired() const = 0;
  /// Blocks the caller until the event has fired.
  virtual void wait() const = 0;
};

/// Told when work has ended, and the moment at which it did.
using Notice = std::function<void(std::chrono::steady_clock::time_point)>;

/// A queue of work that runs in order, beside the caller and beside other streams.
///
/// On a host, work does something; on a GPU, it gives the GPU something to do, and has ended when
/// the GPU has done it. "The work so far" is all work enqueued so far or, when work itself asks,
/// what it has done or given so far.
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

  /// An event that fires when all work so far has ended. Shared: the stream fires it, any
  /// number of waiters keep it.
  [[nodiscard]] virtual std::shared_ptr<const Event> record() = 0;

  /// Later work of this stream starts only after `event` has fired.
  virtual void wait(std::shared_ptr<const Event> event) = 0;

  /// Blocks until all work enqueued so far has ended. Throws: the first exception of that work,
  /// once. Notices asked for so far have been given by then.
  virtual void synchronize() = 0;

  /// Calls `then` once, when the work so far has ended, also when it failed. Notices are given one
  /// after the other, in the order in which they were asked for. `then` must be quick and must not
  /// wait for work of this stream; what it throws is thrown by synchronize().
  virtual void notify(Notice then) = 0;

  /// Whether a notice costs nothing: it is given at once, by the work itself.
  [[nodiscard]] virtual bool has_free_notices() const { return false; }

  /// Lanes beside this stream, which is their compute lane; null where work cannot be given ahead
  /// of what it works on: on a host.
  [[nodiscard]] virtual std::unique_ptr<Lanes> make_lanes() { return nullptr; }

  /// Copies near memory into ordinary memory when the work so far has ended, and waits for that.
  /// Requires: called by work of this stream.
  virtual void read(std::span<const std::byte> near, std::span<std::byte> into) = 0;

  /// Copies ordinary memory into near memory behind the work so far; `from` stays as it is until
  /// that has ended, too. Requires: called by work of this stream.
  virtual void write(std::span<const std::byte> from, std::span<std::byte> near) = 0;

  /// What work gives from now on is called `name` in the pictures of profilers; empty: nothing.
  /// Requires: called by work of this stream.
  virtual void label(std::string_view /*name*/) {}
};

/// Called once when a move has ended, from the thread that ended it; the argument is null when the
/// move succeeded. Must return quickly and must not throw or touch managed memory.
using Completion = std::function<void(std::exception_ptr)>;

}  // namespace spillway::um
