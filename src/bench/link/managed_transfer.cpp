#include "src/bench/link/managed_transfer.h"

#include <chrono>
#include <utility>

#include "src/bench/link/move_timer.h"

namespace spillway {
namespace {

constexpr std::size_t kLeaves = 0;  // the half that goes out
constexpr std::size_t kComes = 1;   // the half that comes in

// One byte a page, at its beginning.
void touch(um::Range range, um::Bytes page, bool writes) {
  for (std::size_t at = 0; at < range.size(); at += page.count()) {
    auto* const byte = static_cast<volatile std::byte*>(&range[at]);
    if (writes) {
      *byte = std::byte{1};
    } else {
      static_cast<void>(*byte);
    }
  }
}

}  // namespace

FaultTransfer::FaultTransfer(um::Device& device, um::Bytes size, const um::ManagedOptions& options)
    : halves_{device, size, /*near_halves=*/1, options} {}

void FaultTransfer::prepare(Direction direction) {
  if (direction == Direction::kOut) {
    halves_.drop(kComes);
  } else {
    halves_.drop(kLeaves);
    halves_.put_far(kComes);
  }
  if (direction == Direction::kIn) return;
  halves_.drop(kLeaves);
  halves_.put_near(kLeaves);
}

// What comes is only read where it has content, so that it stays clean and costs nothing to put far
// again; declared to be overwritten where it has none.
TransferTime FaultTransfer::move(Direction direction) {
  const bool writes = direction == Direction::kOut;
  const um::Use use{.range = halves_.part(kComes),
                    .access = writes ? um::Access::kWrite : um::Access::kRead};
  halves_.hints().begin_use({&use, 1});
  const auto begin = std::chrono::steady_clock::now();
  touch(use.range, halves_.page(), writes);
  const Seconds time = std::chrono::steady_clock::now() - begin;
  halves_.hints().end_use({&use, 1});
  halves_.hints().check();
  return {.whole = time, .call = time};
}

PrefetchTransfer::PrefetchTransfer(um::Device& device, um::Bytes size,
                                   const um::ManagedOptions& options)
    : halves_{device, size, /*near_halves=*/2, options} {}

void PrefetchTransfer::prepare(Direction direction) {
  if (direction != Direction::kOut) halves_.put_far(kComes);
  if (direction != Direction::kIn) halves_.put_near(kLeaves);
}

TransferTime PrefetchTransfer::move(Direction direction) {
  MoveTimer timer;
  if (direction != Direction::kOut) {
    timer.start([&](um::Completion done) {
      halves_.hints().prefetch(halves_.part(kComes), um::MemoryTier::kNear, std::move(done));
    });
  }
  if (direction != Direction::kIn) {
    timer.start([&](um::Completion done) {
      halves_.hints().prefetch(halves_.part(kLeaves), um::MemoryTier::kFar, std::move(done));
    });
  }
  return timer.wait();
}

}  // namespace spillway
