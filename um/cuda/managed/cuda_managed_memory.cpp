#include "um/cuda/managed/cuda_managed_memory.h"

#include <cstdint>
#include <string>

#include "um/error.h"

namespace spillway::um {

void expect_managed_room(Bytes size, const ManagedRoom& room) {
  const Bytes all = room.taken + size;
  if (room.limit && all > *room.limit) {
    throw Error{to_string(all) + " of unified memory are more than the limit of " +
                to_string(*room.limit) + " set for this run; use a smaller network or batch"};
  }
  const Bytes far = saturating_difference(all, room.near);
  if (room.oversubscribe || far + kManagedMargin <= room.free) return;
  throw Error{"unified memory of " + to_string(far) + " does not fit in the " +
              to_string(room.free) + " that the GPU has free, less a margin of " +
              to_string(kManagedMargin) +
              "; use --memory copy, a smaller batch, or --oversubscribe at the risk of a GPU that "
              "hangs"};
}

namespace {

constexpr Bytes kAlignment = 2_MiB;

// Returns the bytes from `address` to the next aligned address.
std::size_t gap(const std::byte* address) {
  const std::uint64_t past = reinterpret_cast<std::uintptr_t>(address) % kAlignment.count();
  return past == 0 ? 0 : kAlignment.count() - past;
}

}  // namespace

CudaManagedMemory::Allocation CudaManagedMemory::take(Bytes size, bool oversubscribe) {
  expect_managed_room(size, {.free = api_.memory().free,
                             .taken = taken_,
                             .near = near_.in_use(),
                             .limit = limit_,
                             .oversubscribe = oversubscribe});
  return {.begin = api_.allocate_managed(size), .size = size};
}

std::byte* CudaManagedMemory::allocate(Bytes size, bool oversubscribe) {
  const std::lock_guard lock{mutex_};
  Allocation allocation = take(size, oversubscribe);
  if (gap(allocation.begin) != 0) {  // the driver promises no alignment
    api_.free_managed(allocation.begin);
    allocation = take(size + kAlignment, oversubscribe);
  }
  std::byte* const address = allocation.begin + gap(allocation.begin);
  try {
    // Advises once, now: later advice would delay every move and page fault.
    api_.advise({address, size.count()}, Advice::kPreferNear);
    allocations_.emplace(address, allocation);
  } catch (...) {
    api_.free_managed(allocation.begin);
    throw;
  }
  taken_ += allocation.size;
  return address;
}

void CudaManagedMemory::free(std::byte* address) noexcept {
  const std::lock_guard lock{mutex_};
  const auto found = allocations_.find(address);
  api_.free_managed(found->second.begin);
  taken_ -= found->second.size;
  allocations_.erase(found);
}

}  // namespace spillway::um
