#pragma once

#include "src/bench/link/transfer.h"

namespace spillway {

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

}  // namespace spillway
