#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "src/dropin/learned_prefetch.h"
#include "src/dropin/space_request.h"
#include "src/dropin/um_cuda_plugin.h"
#include "um/bytes.h"
#include "um/dropin/space.h"

namespace spillway::dropin {

/// A space, its device, and learned prefetch once an iteration was marked.
///
/// Thread safety: every function may be called from any thread.
class OpenSpace {
 public:
  /// `device` is the request's. Throws: um::Error.
  OpenSpace(std::shared_ptr<const DropInDevice> device, const SpaceRequest& request);

  /// For what learned prefetch need not know of.
  [[nodiscard]] um::Space& space() { return space_; }

  // As the space's.
  [[nodiscard]] std::byte* allocate(um::Bytes size, um::Bytes alignment);
  void free(const void* address);
  void free_after(const void* address, std::unique_ptr<const um::Event> event);
  void touch(const void* address, um::Bytes size, um::Access access);
  /// Waits for learned prefetch as well.
  void synchronize();

  /// The first one measures the link and begins to learn. Throws: um::Error.
  void mark_iteration();
  /// Null before the first mark.
  [[nodiscard]] LearnedPrefetch* learned() const {
    return learned_.load(std::memory_order_acquire);
  }

  /// Of a GPU; -1 for the host.
  [[nodiscard]] int ordinal() const { return device_->ordinal; }
  /// For page faults of the calling thread. Throws: um::Error.
  void prepare_thread() const { device_->device->prepare_kernel_thread(); }
  /// Fires when `stream` has done its work so far. Null: there is nothing to wait for.
  /// Throws: um::Misuse when the device has no streams and `stream` is one.
  [[nodiscard]] std::unique_ptr<const um::Event> record(void* stream) const;

 private:
  const std::shared_ptr<const DropInDevice> device_;  // that of all spaces on a GPU
  std::optional<um::Bandwidth> link_;                 // as it was asked for
  um::Space space_;

  std::mutex first_mark_;
  std::unique_ptr<LearnedPrefetch> owned_;  // after what it uses
  std::atomic<LearnedPrefetch*> learned_ = nullptr;
};

}  // namespace spillway::dropin
