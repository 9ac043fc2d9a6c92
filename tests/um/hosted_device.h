#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "um/host/host_device.h"

namespace spillway::test {

/// The host as a device. Tests override what they want to change or observe.
class HostedDevice : public um::Device {
 public:
  [[nodiscard]] std::string name() const override { return host_.name(); }
  [[nodiscard]] std::vector<um::Capability> capabilities() const override { return {}; }
  [[nodiscard]] um::Bytes available_memory() const override { return host_.available_memory(); }
  [[nodiscard]] um::MemoryFacts memory_facts() const override { return host_.memory_facts(); }
  [[nodiscard]] um::Faults faults() const override { return host_.faults(); }
  [[nodiscard]] bool evicts() const override { return host_.evicts(); }
  void prepare_kernel_thread() override { host_.prepare_kernel_thread(); }
  [[nodiscard]] std::unique_ptr<um::Stream> make_stream(const std::string& name) override {
    return host_.make_stream(name);
  }
  [[nodiscard]] um::Memory& memory() override { return host_.memory(); }
  [[nodiscard]] std::unique_ptr<um::ManagedSpace> make_managed_space(
      const um::ManagedOptions& options, um::Ledger& ledger) override {
    return host_.make_managed_space(options, ledger);
  }
  [[nodiscard]] std::unique_ptr<um::CopySpace> make_copy_space(
      const um::CopyOptions& options) override {
    return host_.make_copy_space(options);
  }

 private:
  um::HostDevice host_;
};

/// The host with what a test sets; knows the counters of its last managed space.
class WatchedDevice final : public HostedDevice {
 public:
  std::optional<um::Bytes> available;    ///< instead of what there is
  bool is_gpu = false;                   ///< does not evict
  std::optional<um::MemoryFacts> facts;  ///< instead of the host's

  /// Requires: a managed space was made, and is still there.
  [[nodiscard]] um::Counters counters() const { return space_->counters(); }

  [[nodiscard]] um::Bytes available_memory() const override {
    return available.value_or(HostedDevice::available_memory());
  }
  [[nodiscard]] um::MemoryFacts memory_facts() const override {
    return facts.value_or(HostedDevice::memory_facts());
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
