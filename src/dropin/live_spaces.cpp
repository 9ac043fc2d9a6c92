#include "src/dropin/live_spaces.h"

#include <pthread.h>

#include <utility>

#include "src/dropin/open_device.h"
#include "um/error.h"

namespace spillway::dropin {

LiveSpaces& live_spaces() {
  static auto* const spaces = new LiveSpaces;
  return *spaces;
}

LiveSpaces::LiveSpaces() {
  const int failure =
      pthread_atfork([] { live_spaces().mutex_.lock(); }, [] { live_spaces().mutex_.unlock(); },
                     [] {
                       LiveSpaces& all = live_spaces();
                       all.of_parents_.push_back(std::exchange(all.spaces_, {}));
                       all.gpus_.clear();
                       all.mutex_.unlock();
                     });
  if (failure != 0) throw um::system_error("cannot prepare spaces for fork", failure);
}

std::uint64_t LiveSpaces::make(const SpaceRequest& request) {
  auto made = std::make_shared<OpenSpace>(shared(open_device(request.device)), request);
  const std::lock_guard lock{mutex_};
  spaces_.emplace(++last_id_, std::move(made));
  return last_id_;
}

std::shared_ptr<const DropInDevice> LiveSpaces::shared(DropInDevice device) {
  auto opened = std::make_shared<const DropInDevice>(std::move(device));
  if (opened->ordinal < 0) return opened;
  const std::lock_guard lock{mutex_};
  std::weak_ptr<const DropInDevice>& known = gpus_[opened->ordinal];
  if (auto other = known.lock()) return other;
  known = opened;
  return opened;
}

std::shared_ptr<OpenSpace> LiveSpaces::at(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  return found(id)->second;
}

LiveSpaces::Spaces::iterator LiveSpaces::found(std::uint64_t id) {
  const auto found = spaces_.find(id);
  if (found != spaces_.end()) return found;
  throw InvalidSpace{id > 0 && id <= last_id_
                         ? "space " + std::to_string(id) +
                               " is not alive here: it was destroyed, or made before a fork"
                         : "no space was ever made with the handle " + std::to_string(id)};
}

bool LiveSpaces::has(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  return spaces_.find(id) != spaces_.end();
}

void LiveSpaces::end(std::uint64_t id) {
  Spaces::node_type ending;  // it ends outside the mutex
  const std::lock_guard lock{mutex_};
  ending = spaces_.extract(found(id));
}

}  // namespace spillway::dropin
