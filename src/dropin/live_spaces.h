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

/// A handle that no live space has.
class InvalidSpace final : public um::Misuse {
 public:
  using um::Misuse::Misuse;
};

/// The spaces of the process by their handles, which are never used twice. After a fork the child
/// has none.
///
/// Thread safety: every function may be called from any thread.
class LiveSpaces {
 public:
  /// Throws: um::Error.
  [[nodiscard]] std::uint64_t make(const SpaceRequest& request);
  /// Shared: a space that is destroyed ends when the last call inside it has returned.
  /// Throws: InvalidSpace.
  [[nodiscard]] std::shared_ptr<OpenSpace> at(std::uint64_t id);
  [[nodiscard]] bool has(std::uint64_t id);
  /// Throws: InvalidSpace.
  void end(std::uint64_t id);

 private:
  using Spaces = std::map<std::uint64_t, std::shared_ptr<OpenSpace>>;

  friend LiveSpaces& live_spaces();
  LiveSpaces();

  /// Requires: the mutex is held. Throws: InvalidSpace.
  [[nodiscard]] Spaces::iterator found(std::uint64_t id);
  /// The device itself, or the one that spaces on the same GPU have: what is allocated there is
  /// checked against the GPU's memory by each device, and must be checked together.
  [[nodiscard]] std::shared_ptr<const DropInDevice> shared(DropInDevice device);

  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  Spaces spaces_;
  std::map<int, std::weak_ptr<const DropInDevice>> gpus_;  // by ordinal
  std::vector<Spaces> of_parents_;                         // never touched
};

/// The process's own: C functions have no object to keep it in. It is never destroyed: other
/// programs' destructors at exit may still free their memory.
[[nodiscard]] LiveSpaces& live_spaces();

}  // namespace spillway::dropin
