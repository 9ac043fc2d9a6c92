#pragma once

#include <memory>

#include "tests/um/hosted_device.h"

namespace spillway {

/// This machine, which notes what it was asked for, and says whether it evicts as it is told.
class NotingDevice final : public test::HostedDevice {
 public:
  explicit NotingDevice(bool evicts = true) : evicts_{evicts} {}

  um::ManagedOptions asked;

  [[nodiscard]] bool evicts() const override { return evicts_; }
  [[nodiscard]] std::unique_ptr<um::ManagedSpace> make_managed_space(
      const um::ManagedOptions& options, um::Ledger& ledger) override {
    asked = options;
    return HostedDevice::make_managed_space(options, ledger);
  }

 private:
  const bool evicts_;
};

}  // namespace spillway
