#include "src/dropin/open_space.h"

#include <utility>

#include "src/dropin/measure_link.h"
#include "um/dropin/allocations.h"

namespace spillway::dropin {

OpenSpace::OpenSpace(std::shared_ptr<const DropInDevice> device, const SpaceRequest& request)
    : device_{std::move(device)},
      link_{request.options.link.bandwidth},
      space_{*device_->device, request.options} {}

std::unique_ptr<const um::Event> OpenSpace::record(void* stream) const {
  if (device_->record) return device_->record(stream);
  if (stream != nullptr) throw um::Misuse{"the host device has no streams; pass NULL"};
  return nullptr;
}

std::byte* OpenSpace::allocate(um::Bytes size, um::Bytes alignment) {
  std::byte* const address = space_.allocate(size, alignment);
  if (auto* const learned = this->learned()) learned->allocated(address, size);
  return address;
}

void OpenSpace::free(const void* address) { free_after(address, nullptr); }

void OpenSpace::free_after(const void* address, std::unique_ptr<const um::Event> event) {
  if (auto* const learned = this->learned()) learned->freeing(address);
  space_.free_after(address, std::move(event));
}

void OpenSpace::touch(const void* address, um::Bytes size, um::Access access) {
  if (auto* const learned = this->learned()) learned->touching(address, size, access);
  space_.touch(address, size, access);
}

void OpenSpace::synchronize() {
  if (auto* const learned = this->learned()) learned->wait();
  space_.synchronize();
}

void OpenSpace::mark_iteration() {
  const std::lock_guard lock{first_mark_};  // marks are few
  if (owned_ == nullptr) {
    prefetch::LinkProfile link = link_ ? link_of(*link_) : measure_link(space_);
    if (device_->ordinal < 0) link.faults = um::kHostFaults;  // else a GPU's
    owned_ = std::make_unique<LearnedPrefetch>(space_, link);
    learned_.store(owned_.get(), std::memory_order_release);
  }
  owned_->mark();
}

}  // namespace spillway::dropin
