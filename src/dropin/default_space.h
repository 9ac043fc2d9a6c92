#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "src/dropin/space_request.h"

namespace spillway::dropin {

/// The space of frameworks that pass no handle, made when it is first asked for.
///
/// Thread safety: every function may be called from any thread.
class DefaultSpace {
 public:
  /// What it is to be made of; without this, the environment says. Throws: um::Misuse when it is
  /// there already.
  void set(const SpaceRequest& request);
  /// Its handle. Makes it, also again when it was destroyed. Throws: um::Error.
  [[nodiscard]] std::uint64_t handle();
  /// The last one that it had, alive or not; 0 before the first.
  [[nodiscard]] std::uint64_t last_handle();

 private:
  friend DefaultSpace& default_space();
  DefaultSpace();

  /// Of the thread that did not come along into the child of a fork().
  void forget_in_child();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_being_made_ = false;
  std::optional<SpaceRequest> request_;
  std::uint64_t id_ = 0;
};

/// The process's own, never destroyed: as live_spaces().
[[nodiscard]] DefaultSpace& default_space();

}  // namespace spillway::dropin
