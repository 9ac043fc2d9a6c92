#include "src/dropin/live_far.h"

#include <pthread.h>

#include <string>
#include <utility>

#include "um/dropin/allocations.h"
#include "um/error.h"

namespace spillway::dropin {

LiveFar& live_far() {
  static auto* const stores = new LiveFar;
  return *stores;
}

LiveFar::LiveFar() {
  const int failure =
      pthread_atfork([] { live_far().mutex_.lock(); }, [] { live_far().mutex_.unlock(); },
                     [] {
                       LiveFar& all = live_far();
                       all.of_parents_.push_back(std::exchange(all.stores_, {}));
                       all.mutex_.unlock();
                     });
  if (failure != 0) throw um::system_error("cannot prepare far memory for fork", failure);
}

std::uint64_t LiveFar::make(const um::FarOptions& options, um::Bytes size) {
  std::shared_ptr<um::FarStore> made = um::make_far_store(options, size);
  const std::lock_guard lock{mutex_};
  stores_.emplace(++last_id_, std::move(made));
  return last_id_;
}

std::shared_ptr<um::FarStore> LiveFar::at(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  return found(id)->second;
}

LiveFar::Stores::iterator LiveFar::found(std::uint64_t id) {
  const auto found = stores_.find(id);
  if (found != stores_.end()) return found;
  throw um::Misuse{id > 0 && id <= last_id_
                       ? "far memory " + std::to_string(id) +
                             " is not alive here: it was destroyed, or made before a fork"
                       : "no far memory was ever made with the handle " + std::to_string(id)};
}

void LiveFar::end(std::uint64_t id) {
  Stores::node_type ending;  // it ends outside the mutex
  const std::lock_guard lock{mutex_};
  ending = stores_.extract(found(id));
}

}  // namespace spillway::dropin
