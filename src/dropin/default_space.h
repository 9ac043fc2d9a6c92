#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "src/dropin/space_request.h"

namespace spillway::dropin {

/// The space of frameworks that pass no handle. It is made on first use.
///
/// Thread safety: any thread may call every function.
class DefaultSpace {
 public:
  /// Sets the options of the space; otherwise the environment gives them. Throws: um::Misuse when
  /// the space already exists.
  void set(const SpaceRequest& request);
  /// Returns the handle. Makes the space if it does not exist or was destroyed. Throws: um::Error.
  [[nodiscard]] std::uint64_t handle();
  /// Returns the latest handle, alive or not; 0 before the first.
  [[nodiscard]] std::uint64_t last_handle();

 private:
  friend DefaultSpace& default_space();
  DefaultSpace();

  /// Resets the state of a thread that does not exist in the child of a fork().
  void forget_in_child();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_being_made_ = false;
  std::optional<SpaceRequest> request_;
  std::uint64_t id_ = 0;
};

/// Returns the instance of the process, which is never destroyed, like live_spaces().
[[nodiscard]] DefaultSpace& default_space();

}  // namespace spillway::dropin
