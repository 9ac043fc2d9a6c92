#pragma once

#include <memory>
#include <optional>

#include "tests/um/hosted_device.h"

namespace spillway::test {

/// The host, but for what a test says of it; tells what its last managed space has counted.
class WatchedDevice final : public HostedDevice {
 public:
  std::optional<um::Bytes> available;  ///< instead of what there is
  bool is_gpu = false;                 ///< does not evict

  /// Requires: a managed space was made, and is still there.
  [[nodiscard]] um::Counters counters() const { return space_->counters(); }

  [[nodiscard]] um::Bytes available_memory() const override {
    return available.value_or(HostedDevice::available_memory());
  }
  [[nodiscard]] bool evicts() const override { return !is_gpu; }
  [[nodiscard]] std::unique_ptr<um::ManagedSpace> make_managed_space(
      const um::ManagedOptions& options, um::Ledger& ledger) override {
    auto space = HostedDevice::make_managed_space(options, ledger);
    space_ = space.get();
    return space;
  }

 private:
  const um::ManagedSpace* space_ = nullptr;
};

}  // namespace spillway::test
