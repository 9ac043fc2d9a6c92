// The functions of spillway_um.h on far memory alone.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/dropin/failure.h"
#include "src/dropin/live_far.h"
#include "um/dropin/allocations.h"
#include "um/dropin/spillway_um.h"

namespace {

namespace um = spillway::um;
using spillway::dropin::guarded;
using spillway::dropin::live_far;

constexpr std::uint64_t kFarAlignment = SPILLWAY_UM_FAR_ALIGNMENT;

void expect_aligned(std::uint64_t number, const char* what) {
  if (number % kFarAlignment == 0) return;
  throw um::Misuse{std::string{what} + " " + std::to_string(number) + " is no multiple of " +
                   std::to_string(kFarAlignment) + "; far memory moves in such blocks"};
}

/// Throws: um::Misuse unless the copy is one that `far` can make.
void expect_copy(const um::FarStore& far, std::uint64_t offset, const void* address,
                 std::size_t bytes) {
  if (address == nullptr) throw um::Misuse{"the address is NULL; pass ordinary memory"};
  expect_aligned(offset, "offset");
  expect_aligned(reinterpret_cast<std::uintptr_t>(address), "address");
  expect_aligned(bytes, "size");
  const std::uint64_t size = far.size().count();
  if (offset > size || bytes > size - offset) {
    throw um::Misuse{"bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                     " are not all in far memory of " + std::to_string(size) + " bytes"};
  }
}

}  // namespace

extern "C" {

spillway_um_status spillway_um_far_create(const char* folder, uint64_t bytes,
                                          spillway_um_far* far) {
  return guarded([&] {
    if (far == nullptr) throw um::Misuse{"far is NULL; pass where to put it"};
    far->id = 0;  // also when there is none
    if (bytes == 0) throw um::Misuse{"far memory of no bytes; ask for some"};
    expect_aligned(bytes, "size");
    um::FarOptions options;
    if (folder != nullptr) options.file = folder;
    far->id = live_far().make(options, um::Bytes{bytes});
  });
}

spillway_um_status spillway_um_far_destroy(spillway_um_far far) {
  return guarded([&] { live_far().end(far.id); });
}

spillway_um_status spillway_um_far_write(spillway_um_far far, uint64_t offset, const void* from,
                                         size_t bytes) {
  return guarded([&] {
    const auto store = live_far().at(far.id);
    expect_copy(*store, offset, from, bytes);
    store->write(um::Bytes{offset}, {static_cast<const std::byte*>(from), bytes});
  });
}

spillway_um_status spillway_um_far_read(spillway_um_far far, uint64_t offset, void* to,
                                        size_t bytes) {
  return guarded([&] {
    const auto store = live_far().at(far.id);
    expect_copy(*store, offset, to, bytes);
    store->read(um::Bytes{offset}, {static_cast<std::byte*>(to), bytes});
  });
}

}  // extern "C"
