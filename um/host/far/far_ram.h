#pragma once

#include "um/host/far/far_store.h"
#include "um/range.h"

namespace spillway::um {

/// Far memory in RAM, which takes physical memory page by page as it is first written.
class FarRam final : public FarStore {
 public:
  /// Throws: OutOfMemory when the machine could not hold `size` more bytes.
  explicit FarRam(Bytes size);
  FarRam(const FarRam&) = delete;
  FarRam& operator=(const FarRam&) = delete;
  ~FarRam() override;

  [[nodiscard]] Range addresses(Bytes offset, Bytes size) override;
  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  [[nodiscard]] Bytes size() const override { return Bytes{memory_.size()}; }
  [[nodiscard]] std::string description() const override { return "RAM"; }

 private:
  Range memory_;
};

}  // namespace spillway::um
