#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "um/host/host_device.h"

namespace spillway::test {

/// The host, but for what a test says of it; tells what its last managed space has counted.
class WatchedDevice final : public um::Device {
 public:
  std::optional<um::Bytes> available;  ///< instead of what there is
  bool is_gpu = false;                 ///< does not evict

  /// Requires: a managed space was made, and is still there.
  [[nodiscard]] um::Counters counters() const { return space_->counters(); }

  [[nodiscard]] std::string name() const override { return host_.name(); }
  [[nodiscard]] std::vector<um::Capability> capabilities() const override { return {}; }
  [[nodiscard]] um::Bytes available_memory() const override {
    return available.value_or(host_.available_memory());
  }
  [[nodiscard]] um::Faults faults() const override { return host_.faults(); }
  [[nodiscard]] bool evicts() const override { return !is_gpu; }
  void prepare_kernel_thread() override { host_.prepare_kernel_thread(); }
  [[nodiscard]] std::unique_ptr<um::Stream> make_stream(const std::string& name) override {
    return host_.make_stream(name);
  }
  [[nodiscard]] um::Memory& memory() override { return host_.memory(); }
  [[nodiscard]] std::unique_ptr<um::ManagedSpace> make_managed_space(
      const um::ManagedOptions& options, um::Ledger& ledger) override {
    auto space = host_.make_managed_space(options, ledger);
    space_ = space.get();
    return space;
  }
  [[nodiscard]] std::unique_ptr<um::CopySpace> make_copy_space(
      const um::CopyOptions& options) override {
    return host_.make_copy_space(options);
  }

 private:
  um::HostDevice host_;
  const um::ManagedSpace* space_ = nullptr;
};

}  // namespace spillway::test
