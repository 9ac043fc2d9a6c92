#include "src/bench/link/pageable_transfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "um/error.h"
#include "um/memory.h"

namespace spillway {
namespace {

using namespace um::literals;
using Clock = std::chrono::steady_clock;

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

}  // namespace

std::unique_ptr<Transfer> make_pageable_transfer(um::Device& device, um::Bytes size) {
  if (device.evicts()) return std::make_unique<HostPageableTransfer>(device, size);
  return std::make_unique<DevicePageableTransfer>(device, size);
}

}  // namespace spillway
