#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/dropin/learned_prefetch.h"
#include "src/dropin/space_request.h"
#include "src/dropin/um_cuda_plugin.h"
#include "um/bytes.h"
#include "um/dropin/allocations.h"
#include "um/dropin/space.h"

namespace spillway::dropin {

/// A space with its device and, after the first marked iteration, learned prefetch.
///
/// Thread safety: any thread may call every function.
class OpenSpace {
 public:
  /// `device` must match the request. Throws: um::Error.
  OpenSpace(std::shared_ptr<const DropInDevice> device, const SpaceRequest& request);

  /// Gives access for calls that learned prefetch need not see.
  [[nodiscard]] um::Space& space() { return space_; }

  // Like the functions of the space.
  [[nodiscard]] std::byte* allocate(um::Bytes size, um::Bytes alignment);
  void free(const void* address);
  void touch(const void* address, um::Bytes size, um::Access access);
  /// Also waits for learned prefetch.
  void synchronize();

  // In the order of a stream of the program: `stream` is native, and NULL is the default stream.

  /// Allocates; on a GPU the memory is near before later work of `stream`.
  [[nodiscard]] std::byte* allocate_for(void* stream, um::Bytes size, um::Bytes alignment);
  /// Frees when the work so far of `stream` has ended. Throws: um::Misuse when the device has no
  /// streams and `stream` is not null.
  void free_after(const void* address, void* stream);

  /// Marks an iteration. The first call measures the link and starts learning. Throws: um::Error.
  void mark_iteration();
  /// Returns null before the first mark.
  [[nodiscard]] LearnedPrefetch* learned() const {
    return learned_.load(std::memory_order_acquire);
  }

  /// Returns the GPU's number; -1 for the host.
  [[nodiscard]] int ordinal() const { return device_->ordinal; }
  /// Prepares the calling thread for page faults. Throws: um::Error.
  void prepare_thread() const { device_->device->prepare_kernel_thread(); }

 private:
  const std::shared_ptr<const DropInDevice> device_;  // shared by all spaces on a GPU
  std::optional<um::Bandwidth> link_;                 // as requested
  um::Space space_;

  std::mutex first_mark_;
  std::unique_ptr<LearnedPrefetch> owned_;  // after the members it uses
  std::atomic<LearnedPrefetch*> learned_ = nullptr;
};

/// A handle without a live space.
class InvalidSpace final : public um::Misuse {
 public:
  using um::Misuse::Misuse;
};

/// The spaces of the process by handle. Handles are never reused. A child of a fork has no spaces.
///
/// Thread safety: any thread may call every function.
class LiveSpaces {
 public:
  /// Throws: um::Error.
  [[nodiscard]] std::uint64_t make(const SpaceRequest& request);
  /// Returns a shared pointer, which keeps a destroyed space until the last running call has
  /// returned. Throws: InvalidSpace.
  [[nodiscard]] std::shared_ptr<OpenSpace> at(std::uint64_t id);
  [[nodiscard]] bool has(std::uint64_t id);
  /// Throws: InvalidSpace.
  void end(std::uint64_t id);

 private:
  using Spaces = std::map<std::uint64_t, std::shared_ptr<OpenSpace>>;

  friend LiveSpaces& live_spaces();
  LiveSpaces();

  /// Requires: the caller holds the mutex. Throws: InvalidSpace.
  [[nodiscard]] Spaces::iterator found(std::uint64_t id);
  /// Returns the device of existing spaces on the same GPU, otherwise `device`. Spaces must share
  /// it because each device checks its allocations against the GPU's memory.
  [[nodiscard]] std::shared_ptr<const DropInDevice> shared(DropInDevice device);

  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  Spaces spaces_;
  std::map<int, std::weak_ptr<const DropInDevice>> gpus_;  // by ordinal
  std::vector<Spaces> of_parents_;                         // never accessed
};

/// Returns the instance of the process, since C functions have no object to hold it. It is never
/// destroyed, because destructors of the program may free memory at exit.
[[nodiscard]] LiveSpaces& live_spaces();

}  // namespace spillway::dropin
