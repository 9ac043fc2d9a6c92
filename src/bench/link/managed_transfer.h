#pragma once

#include "src/bench/link/managed_halves.h"
#include "src/bench/link/transfer.h"

namespace spillway {

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

}  // namespace spillway
