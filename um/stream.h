#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "um/lanes.h"

namespace spillway::um {

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

}  // namespace spillway::um
