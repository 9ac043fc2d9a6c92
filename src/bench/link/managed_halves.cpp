#include "src/bench/link/managed_halves.h"

#include <algorithm>
#include <utility>

#include "src/bench/link/move_timer.h"

namespace spillway {
namespace {

using namespace um::literals;

um::ManagedOptions sized(um::ManagedOptions options, um::Bytes page, um::Bytes half,
                         std::size_t near_halves) {
  options.page = page;
  options.size = 2 * half;
  options.near = near_halves * half;
  return options;
}

}  // namespace

// A GPU's driver has pages of 2 MiB; the host's near memory holds two pages or more.
ManagedHalves::ManagedHalves(um::Device& device, um::Bytes size, std::size_t near_halves,
                             um::ManagedOptions options)
    : size_{size},
      page_{device.evicts() ? std::min(size, 2_MiB) : 2_MiB},
      half_{std::max(size, 2 * page_)},
      ledger_{near_halves * half_},
      space_{
          device.make_managed_space(sized(std::move(options), page_, half_, near_halves), ledger_)},
      stream_{device.make_stream("populate")} {
  device.prepare_kernel_thread();
}

um::Range ManagedHalves::whole(std::size_t half) const {
  return space_->slab().subspan(half * half_.count(), half_.count());
}

um::Range ManagedHalves::part(std::size_t half) const {
  return whole(half).first(um::round_up(size_, page_).count());
}

void ManagedHalves::put_far(std::size_t half) {
  if (!has_content_[half]) put_near(half);
  move(half, um::MemoryTier::kFar);
}

// Content is brought back rather than made: what a GPU's driver knows to be dead would not move.
void ManagedHalves::put_near(std::size_t half) {
  if (has_content_[half]) {
    move(half, um::MemoryTier::kNear);
  } else {
    um::populate_now(*space_, whole(half), *stream_);
  }
  const um::Use overwrite{.range = whole(half), .access = um::Access::kWrite};
  hints().begin_use({&overwrite, 1});
  hints().end_use({&overwrite, 1});
  has_content_[half] = true;
}

void ManagedHalves::drop(std::size_t half) {
  hints().discard(whole(half));
  has_content_[half] = false;
}

void ManagedHalves::move(std::size_t half, um::MemoryTier tier) {
  MoveTimer timer;
  timer.start([&](um::Completion done) { hints().prefetch(whole(half), tier, std::move(done)); });
  static_cast<void>(timer.wait());
}

}  // namespace spillway
