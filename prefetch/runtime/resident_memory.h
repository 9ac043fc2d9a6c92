#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"

namespace spillway::prefetch {

/// The places of blocks that never move.
class ResidentPlaces final : public FixedPlaces {
 public:
  explicit ResidentPlaces(const SlabAddress& address) : address_{address} {}

  [[nodiscard]] std::byte* address(Position /*position*/, DataId id) const override {
    return address_.block(id);
  }
  [[nodiscard]] std::byte* workspace(Position position) const override {
    return address_.workspace(position);
  }
  [[nodiscard]] Copy offload(std::uint32_t /*index*/) const override { return {}; }
  [[nodiscard]] Copy prefetch(std::uint32_t /*index*/) const override { return {}; }
  void begin_step() override {}
  void end_step() noexcept override {}

 private:
  SlabAddress address_;
};

/// Everything is near all the time: no waits, no moves.
class ResidentMemory final : public StepMemory {
 public:
  explicit ResidentMemory(const SlabAddress& address) : places_{address} {}

  [[nodiscard]] FixedPlaces* fixed_places() override { return &places_; }
  void begin_step() override {}
  void begin_run(Position position) override { position_ = position; }
  [[nodiscard]] std::byte* address(DataId id) const override {
    return places_.address(position_, id);
  }
  [[nodiscard]] std::byte* workspace() const override { return places_.workspace(position_); }
  void after_launch(Position /*position*/) override {}
  void end_run(Position /*position*/) override {}
  void fail(std::exception_ptr error) override { error_ = std::move(error); }
  void end_step() override {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  [[nodiscard]] Timeline moves() const override { return {}; }

 private:
  ResidentPlaces places_;
  Position position_ = 0;
  std::exception_ptr error_;
};

}  // namespace spillway::prefetch
