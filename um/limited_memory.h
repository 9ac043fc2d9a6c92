#pragma once

#include "um/ledger.h"
#include "um/memory.h"

namespace spillway::um {

/// A Memory that charges a ledger for what it hands out, and so never exceeds the ledger's limit.
/// Adds one rule to `upstream`, nothing else. Both must outlive it.
class LimitedMemory final : public Memory {
 public:
  LimitedMemory(Memory& upstream, Ledger& ledger) : upstream_{&upstream}, ledger_{&ledger} {}

  [[nodiscard]] std::byte* allocate(Bytes size) override;
  void free(std::byte* address, Bytes size) noexcept override;

 private:
  Memory* upstream_;
  Ledger* ledger_;
};

}  // namespace spillway::um
