#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/dropin/open_space.h"
#include "src/dropin/space_request.h"
#include "src/dropin/um_cuda_plugin.h"
#include "um/dropin/allocations.h"

namespace spillway::dropin {

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
