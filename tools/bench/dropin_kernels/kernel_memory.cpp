#include "tools/bench/dropin_kernels/kernel_memory.h"

#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace spillway::bench {
namespace {

constexpr std::size_t kHugePage = 2U << 20U;

void check(spillway_um_status status) {
  if (status != SPILLWAY_UM_OK) throw std::runtime_error{spillway_um_last_error()};
}

}  // namespace

Memory::Memory(const KernelMemoryOptions& options) : way_{options.way} {
  if (way_ == Way::kPlain) return;
  spillway_um_options wanted;
  spillway_um_options_init(&wanted);
  wanted.near_bytes = options.near;
  wanted.capacity_bytes = options.capacity;
  wanted.page_bytes = options.page;
  wanted.link_bytes_per_second = options.link;
  check(spillway_um_create(&wanted, &space_));
}

Memory::~Memory() {
  if (way_ != Way::kPlain) static_cast<void>(spillway_um_destroy(space_));
}

void* Memory::allocate(std::size_t bytes) {
  void* address = nullptr;
  if (way_ == Way::kPlain) {
    const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    address = std::aligned_alloc(kHugePage, whole);  // until the process ends
    if (address == nullptr) throw std::bad_alloc{};
    static_cast<void>(madvise(address, whole, MADV_HUGEPAGE));
  } else {
    check(spillway_um_allocate(space_, bytes, 0, &address));
  }
  std::memset(address, 0, bytes);
  return address;
}

void Memory::touch(const void* address, std::size_t bytes, int access) {
  if (way_ == Way::kLearned) check(spillway_um_touch(space_, address, bytes, access));
}

void Memory::mark() {
  if (way_ == Way::kLearned) check(spillway_um_mark_iteration(space_));
}

void Memory::settle() {
  if (way_ == Way::kLearned) check(spillway_um_synchronize(space_));
}

spillway_um_counters Memory::counters() const {
  spillway_um_counters counters{};
  counters.version = SPILLWAY_UM_COUNTERS_VERSION;
  if (way_ != Way::kPlain) check(spillway_um_get_counters(space_, &counters));
  return counters;
}

spillway_um_learned_counters Memory::learned() const {
  spillway_um_learned_counters counters{};
  counters.version = SPILLWAY_UM_LEARNED_COUNTERS_VERSION;
  if (way_ == Way::kLearned) check(spillway_um_get_learned_counters(space_, &counters));
  return counters;
}

std::string Memory::status() const {
  std::array<char, 256> text{};
  if (way_ == Way::kLearned) check(spillway_um_learned_status(space_, text.data(), text.size()));
  return text.data();
}

}  // namespace spillway::bench
