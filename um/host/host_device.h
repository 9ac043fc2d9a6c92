#pragma once

#include "um/device.h"
#include "um/host/copy_space.h"

namespace spillway::um {

/// The processor that runs this program. Near memory is a budget of its RAM; far memory is other
/// RAM or a file.
class HostDevice final : public Device {
 public:
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::vector<Capability> capabilities() const override;
  [[nodiscard]] Bytes available_memory() const override;
  [[nodiscard]] MemoryFacts memory_facts() const override;

  [[nodiscard]] Faults faults() const override { return kHostFaults; }

  [[nodiscard]] bool evicts() const override { return true; }

  void prepare_kernel_thread() override;
  [[nodiscard]] std::unique_ptr<Stream> make_stream(const std::string& name) override;
  [[nodiscard]] Memory& memory() override { return memory_; }
  [[nodiscard]] std::unique_ptr<ManagedSpace> make_managed_space(const ManagedOptions& options,
                                                                 Ledger& ledger) override;
  [[nodiscard]] std::unique_ptr<CopySpace> make_copy_space(const CopyOptions& options) override;

 private:
  HostMemory memory_;
};

}  // namespace spillway::um
