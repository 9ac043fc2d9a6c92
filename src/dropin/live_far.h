#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "um/host/far/far_store.h"

namespace spillway::dropin {

/// Far memory without addresses that the process has, by handles, which are never used twice. After
/// a fork the child has none: both would write to one file.
///
/// Thread safety: every function may be called from any thread.
class LiveFar {
 public:
  /// Throws: um::Error.
  [[nodiscard]] std::uint64_t make(const um::FarOptions& options, um::Bytes size);
  /// Shared: what is destroyed ends when the last call inside it has returned. Throws: um::Misuse.
  [[nodiscard]] std::shared_ptr<um::FarStore> at(std::uint64_t id);
  /// Throws: um::Misuse.
  void end(std::uint64_t id);

 private:
  using Stores = std::map<std::uint64_t, std::shared_ptr<um::FarStore>>;

  friend LiveFar& live_far();
  LiveFar();

  /// Requires: the mutex is held. Throws: um::Misuse.
  [[nodiscard]] Stores::iterator found(std::uint64_t id);

  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  Stores stores_;
  std::vector<Stores> of_parents_;  // never touched
};

/// The process's own, never destroyed, as live_spaces() is.
[[nodiscard]] LiveFar& live_far();

}  // namespace spillway::dropin
