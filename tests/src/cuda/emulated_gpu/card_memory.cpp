#include "tests/src/cuda/emulated_gpu/card_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {
namespace {

constexpr std::size_t kGuardBytes = kManagedPageBytes;
// Larger blocks are not poisoned: a test would have to fill all of a slab.
constexpr std::size_t kMaxPoisoned = 256U << 20U;

std::size_t rounded(std::size_t size) {
  return (size + kManagedPageBytes - 1) / kManagedPageBytes * kManagedPageBytes;
}

}  // namespace

CardMemory::CardMemory(const CardSettings& settings)
    : memory_{settings.memory},
      misalignment_{settings.misalignment},
      is_poisoned_{!settings.is_dry},
      ignores_hints_{settings.ignores_hints},
      used_(static_cast<std::size_t>(std::max(settings.devices, 1))) {
  void* const all =
      mmap(nullptr, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) {
    std::perror("emulated GPU: no addresses for its memory");
    std::abort();
  }
  const auto past = reinterpret_cast<std::uintptr_t>(all) % kManagedPageBytes;
  region_ = static_cast<std::byte*>(all) + (past == 0 ? 0 : kManagedPageBytes - past);
}

std::byte* CardMemory::allocate(BlockKind kind, std::size_t size, int device) {
  const std::size_t room = rounded(size + misalignment_);
  if (kind == BlockKind::kDevice && used(device) + rounded(size) > memory_) {
    // Managed pages make room for device memory, as the driver evicts them.
    std::size_t managed = counts_.near_bytes - counts_.device_bytes;
    if (used(device) - managed + rounded(size) > memory_) return nullptr;
  }
  if (taken_ + room + 2 * kGuardBytes > kRegionBytes) return nullptr;
  std::byte* const base = region_ + taken_ + kGuardBytes;
  if (mprotect(base, room, PROT_READ | PROT_WRITE) != 0) return nullptr;
  taken_ += room + 2 * kGuardBytes;
  std::byte* const begin = base + (kind == BlockKind::kDevice ? misalignment_ : 0);
  Block block{.begin = begin, .size = size, .kind = kind, .device = device, .pages = {}};
  switch (kind) {
    case BlockKind::kDevice:
      counts_.device_bytes += rounded(size);
      counts_.device_peak = std::max(counts_.device_peak, counts_.device_bytes);
      used_[static_cast<std::size_t>(device)] += rounded(size);
      counts_.near_bytes += rounded(size);
      counts_.asked_bytes += size;
      note_near();
      make_room(device);
      break;
    case BlockKind::kManaged:
      block.pages.resize(rounded(size) / kManagedPageBytes);
      break;
    case BlockKind::kPinned:
      counts_.pinned_bytes += size;
      counts_.pinned_peak = std::max(counts_.pinned_peak, counts_.pinned_bytes);
      break;
  }
  if (is_poisoned_ && kind != BlockKind::kManaged && size <= kMaxPoisoned) poison(begin, size);
  blocks_.emplace(begin, std::move(block));
  return begin;
}

void CardMemory::free(std::byte* address) {
  const auto found = blocks_.find(address);
  Block& block = found->second;
  const std::size_t room = rounded(block.size + misalignment_);
  std::byte* const base = address - (block.kind == BlockKind::kDevice ? misalignment_ : 0);
  switch (block.kind) {
    case BlockKind::kDevice:
      counts_.device_bytes -= rounded(block.size);
      counts_.near_bytes -= rounded(block.size);
      counts_.asked_bytes -= block.size;
      used_[static_cast<std::size_t>(block.device)] -= rounded(block.size);
      break;
    case BlockKind::kManaged:
      for (ManagedPage& page : block.pages) make_far(page);
      break;
    case BlockKind::kPinned:
      counts_.pinned_bytes -= block.size;
      break;
  }
  madvise(base, room, MADV_DONTNEED);
  mprotect(base, room, PROT_NONE);  // a later access ends the process
  std::ranges::replace(recent_, &block, nullptr);
  blocks_.erase(found);
}

Block* CardMemory::look_up(const void* begin, std::size_t size) {
  auto next = blocks_.upper_bound(static_cast<const std::byte*>(begin));
  if (next == blocks_.begin()) return nullptr;
  Block& block = std::prev(next)->second;
  if (!contains(block, begin, size)) return nullptr;
  return recent(begin) = &block;
}

template <class Visit>
void CardMemory::each_page(Block& block, const void* begin, std::size_t size, const Visit& visit) {
  if (size == 0) return;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(begin) - block.begin);
  const std::size_t end = (offset + size - 1) / kManagedPageBytes;
  for (std::size_t i = offset / kManagedPageBytes; i <= end; ++i) visit(block.pages[i]);
}

void CardMemory::make_near(ManagedPage& page, int device) {
  if (page.is_near && page.device == device) return;
  make_far(page);
  page.is_near = true;
  page.device = device;
  page.last_arrival = ++arrivals_;
  counts_.near_bytes += kManagedPageBytes;
  counts_.asked_bytes += kManagedPageBytes;
  used_[static_cast<std::size_t>(device)] += kManagedPageBytes;
}

void CardMemory::make_far(ManagedPage& page) {
  if (!page.is_near) return;
  page.is_near = false;
  counts_.near_bytes -= kManagedPageBytes;
  counts_.asked_bytes -= kManagedPageBytes;
  used_[static_cast<std::size_t>(page.device)] -= kManagedPageBytes;
}

// Evicts the pages that arrived first until the device's memory suffices.
void CardMemory::make_room(int device) {
  while (used(device) > memory_) {
    ManagedPage* oldest = nullptr;
    for (auto& [begin, block] : blocks_) {
      for (ManagedPage& page : block.pages) {
        if (!page.is_near || page.device != device) continue;
        if (oldest == nullptr || page.last_arrival < oldest->last_arrival) oldest = &page;
      }
    }
    if (oldest == nullptr) return;
    make_far(*oldest);
    counts_.evicted_bytes += kManagedPageBytes;
  }
}

std::size_t CardMemory::used(int device) const { return used_[static_cast<std::size_t>(device)]; }

void CardMemory::note_near() {
  counts_.near_peak = std::max(counts_.near_peak, counts_.near_bytes);
  counts_.asked_peak = std::max(counts_.asked_peak, counts_.asked_bytes);
}

void CardMemory::bring(Block& block, const void* begin, std::size_t size, int device) {
  if (ignores_hints_) return;
  each_page(block, begin, size, [&](ManagedPage& page) {
    if (!page.is_near && page.has_content) counts_.prefetched_bytes += kManagedPageBytes;
    make_near(page, device);
    page.has_content = true;
    make_room(device);
  });
  note_near();
}

void CardMemory::send(Block& block, const void* begin, std::size_t size) {
  each_page(block, begin, size, [&](ManagedPage& page) {
    if (page.is_near && page.has_content) counts_.offloaded_bytes += kManagedPageBytes;
    make_far(page);
  });
}

void CardMemory::discard(Block& block, const void* begin, std::size_t size) {
  if (is_poisoned_) poison(const_cast<void*>(begin), size);
  each_page(block, begin, size, [&](ManagedPage& page) {
    make_far(page);
    page.has_content = false;
  });
  counts_.discarded_bytes += size;
}

void CardMemory::touch(Block& block, const void* begin, std::size_t size, int device,
                       bool /*writes*/) {
  each_page(block, begin, size, [&](ManagedPage& page) {
    if (page.is_near && page.device == device) return;
    ++counts_.device_faults;
    if (page.has_content) counts_.faulted_bytes += kManagedPageBytes;
    make_near(page, device);
    page.has_content = true;
    make_room(device);
    note_near();
  });
}

std::size_t CardMemory::free_bytes(int device) const {
  const std::size_t taken = used(device);
  return taken >= memory_ ? 0 : memory_ - taken;
}

}  // namespace spillway::emulated
