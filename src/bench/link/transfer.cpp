#include "src/bench/link/transfer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "src/bench/bench_file.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway {
namespace {

using namespace um::literals;
using Clock = std::chrono::steady_clock;

um::ManagedOptions sized(um::ManagedOptions options, um::Bytes page, um::Bytes half,
                         std::size_t near_halves) {
  options.page = page;
  options.size = 2 * half;
  options.near = near_halves * half;
  return options;
}

/// Page faults of the calling thread: in, of pages that are far while there is room; out, of pages
/// without content, each of which pushes out a page that must be saved; both, of pages that are
/// far, each of which does so too. One thread faults, so both ways are one after the other.
class FaultTransfer final : public Transfer {
 public:
  FaultTransfer(um::Device& device, um::Bytes size, const um::ManagedOptions& options);
  void prepare(Direction direction) override;
  [[nodiscard]] TransferTime move(Direction direction) override;
  [[nodiscard]] std::string description() const override { return halves_.description(); }

 private:
  ManagedHalves halves_;
};

/// Hints that move pages, each way at once where both are asked for.
class PrefetchTransfer final : public Transfer {
 public:
  PrefetchTransfer(um::Device& device, um::Bytes size, const um::ManagedOptions& options);
  void prepare(Direction direction) override;
  [[nodiscard]] TransferTime move(Direction direction) override;
  [[nodiscard]] std::string description() const override { return halves_.description(); }

 private:
  ManagedHalves halves_;
};

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

// Pages with content are only read, so that they stay clean and cost nothing to put far again.
// Pages without content are declared to be overwritten.
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

/// Explicit copies, each way at once where both are asked for.
class CopyTransfer final : public Transfer {
 public:
  CopyTransfer(um::Device& device, um::Bytes size, const um::ManagedOptions& options);
  [[nodiscard]] TransferTime move(Direction direction) override;
  [[nodiscard]] std::string description() const override { return space_->description(); }

 private:
  um::Bytes size_;
  std::unique_ptr<um::CopySpace> space_;
};

// Near and far memory each have a half that comes and one that leaves.
CopyTransfer::CopyTransfer(um::Device& device, um::Bytes size, const um::ManagedOptions& options)
    : size_{size},
      space_{device.make_copy_space(
          {.size = 2 * size, .near = 2 * size, .far = options.far, .link = options.link})} {
  // A file gives zeros without reading where it was never written.
  MoveTimer timer;
  timer.start([&](um::Completion done) {
    space_->copies().offload(space_->near(), um::Bytes{}, std::move(done));
  });
  static_cast<void>(timer.wait());
}

TransferTime CopyTransfer::move(Direction direction) {
  const um::Range near = space_->near();
  MoveTimer timer;
  if (direction != Direction::kOut) {
    timer.start([&](um::Completion done) {
      space_->copies().prefetch(um::Bytes{}, near.first(size_.count()), std::move(done));
    });
  }
  if (direction != Direction::kIn) {
    timer.start([&](um::Completion done) {
      space_->copies().offload(near.last(size_.count()), size_, std::move(done));
    });
  }
  return timer.wait();
}

// Pieces are timed together until they have so many bytes: a clock takes longer than to copy 4 KiB,
// and another thread longer to wake up than to copy 1 MiB.
constexpr um::Bytes kTimedTogether = 1_MiB;
constexpr um::Bytes kTimedTogetherByTwo = 16_MiB;

// Two pieces of memory, one copied to the other.
class Lane {
 public:
  Lane(um::Device& device, um::Bytes size)
      : from_{device.memory(), size}, to_{device.memory(), size} {}

  void copy(std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      std::memcpy(to_.data(), from_.data(), from_.size().count());
    }
  }

 private:
  um::Block from_;
  um::Block to_;
};

class HostPageableTransfer final : public Transfer {
 public:
  HostPageableTransfer(um::Device& device, um::Bytes size)
      : size_{size}, in_{device, size}, out_{device, size}, second_{device.make_stream("bench")} {}

  [[nodiscard]] TransferTime move(Direction direction) override {
    const bool is_both = direction == Direction::kBoth;
    const um::Bytes together = is_both ? kTimedTogetherByTwo : kTimedTogether;
    const std::size_t times = std::max<std::size_t>(1, together / size_);
    const auto begin = Clock::now();
    if (is_both) second_->enqueue([this, times] { out_.copy(times); });
    (direction == Direction::kOut ? out_ : in_).copy(times);
    if (is_both) second_->synchronize();
    const Seconds each = Seconds{Clock::now() - begin} / static_cast<double>(times);
    return {.whole = each, .call = each};
  }
  [[nodiscard]] std::string description() const override { return "memcpy"; }

 private:
  um::Bytes size_;
  Lane in_;
  Lane out_;
  std::unique_ptr<um::Stream> second_;
};

// Through the stream's read of near memory, which copies for the host.
class DevicePageableTransfer final : public Transfer {
 public:
  DevicePageableTransfer(um::Device& device, um::Bytes size)
      : near_{device.memory(), size}, far_(size.count()), stream_{device.make_stream("bench")} {}

  [[nodiscard]] TransferTime move(Direction direction) override {
    um::expects(direction == Direction::kOut, "a device reads near memory, it does not write it");
    Seconds time{0};
    stream_->enqueue([&] {
      const auto begin = Clock::now();
      stream_->read(near_.bytes(), far_);
      time = Clock::now() - begin;
    });
    stream_->synchronize();
    return {.whole = time, .call = time};
  }
  [[nodiscard]] std::string description() const override { return "copies of the driver"; }

 private:
  um::Block near_;
  std::vector<std::byte> far_;
  std::unique_ptr<um::Stream> stream_;
};

// Copies between near memory and ordinary memory by the calling thread, and by a second one where
// both ways are asked for. On a GPU only out.
std::unique_ptr<Transfer> make_pageable_transfer(um::Device& device, um::Bytes size) {
  if (device.evicts()) return std::make_unique<HostPageableTransfer>(device, size);
  return std::make_unique<DevicePageableTransfer>(device, size);
}

constexpr um::Bytes kGpuPage = 2_MiB;
constexpr std::array kWayNames{"fault", "prefetch", "pageable_copy", "pinned_copy", "file"};
static_assert(kWayNames.size() == static_cast<std::size_t>(Way::kFile) + 1);
constexpr std::array kDirectionNames{"in", "out", "both"};
static_assert(kDirectionNames.size() == static_cast<std::size_t>(Direction::kBoth) + 1);

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

std::string to_string(Way way) { return kWayNames.at(static_cast<std::size_t>(way)); }

std::string to_string(Direction direction) {
  return kDirectionNames.at(static_cast<std::size_t>(direction));
}

std::optional<Way> find_way(const std::string& name) { return find_named<Way>(kWayNames, name); }

std::optional<Direction> find_direction(const std::string& name) {
  return find_named<Direction>(kDirectionNames, name);
}

std::unique_ptr<Transfer> make_transfer(um::Device& device, Way way, um::Bytes size,
                                        const um::ManagedOptions& space) {
  um::expects(size >= 4_KiB && std::has_single_bit(size.count()),
              "a transfer moves a power of two from 4 KiB on");
  um::ManagedOptions options = space;
  if (way != Way::kFile) options.far.file.clear();
  switch (way) {
    case Way::kFault:
      return std::make_unique<FaultTransfer>(device, size, options);
    case Way::kPrefetch:
      return std::make_unique<PrefetchTransfer>(device, size, options);
    case Way::kPageableCopy:
      return make_pageable_transfer(device, size);
    case Way::kPinnedCopy:
    case Way::kFile:
      break;
  }
  return std::make_unique<CopyTransfer>(device, size, options);
}

std::optional<std::string> why_not(const um::Device& device, Way way, Direction direction,
                                   um::Bytes size) {
  if (device.evicts()) return std::nullopt;  // the host does it all
  const um::MemoryFacts memory = device.memory_facts();
  if (memory.is_host_ram && (way == Way::kPrefetch || way == Way::kPinnedCopy)) {
    return "the memory of this GPU is the host's RAM: there is no link";
  }
  switch (way) {
    case Way::kFault:
      return "a GPU's page faults are those of its kernels; spillway train --count-faults counts "
             "them";
    case Way::kPrefetch:
      if (!memory.moves_by_hints) return "its unified memory does not move by hints";
      if (size < kGpuPage) return "a GPU moves unified memory in pages of 2 MiB";
      break;
    case Way::kPageableCopy:
      if (direction != Direction::kOut) return "Spillway copies ordinary memory from a GPU only";
      break;
    case Way::kPinnedCopy:
    case Way::kFile:
      break;
  }
  return std::nullopt;
}

}  // namespace spillway
