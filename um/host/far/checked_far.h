#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "um/host/far/far_store.h"
#include "um/range.h"

namespace spillway::um {

/// A far store that remembers a checksum of every 4 KiB written to it, and reads nothing else back.
/// The checksums take 1/1024 of the store's size, in RAM, page by page as it is first written.
class CheckedFar final : public FarStore {
 public:
  /// `folder` is where the file of `far` is, for what is said about it. Throws: OutOfMemory.
  CheckedFar(std::unique_ptr<FarStore> far, std::string folder);
  CheckedFar(const CheckedFar&) = delete;
  CheckedFar& operator=(const CheckedFar&) = delete;
  ~CheckedFar() override;

  /// Reads once more when something else comes than was written. What was never written is not
  /// checked. Throws: as `far`; Error that names the folder and the place in the file when it is
  /// still something else.
  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  [[nodiscard]] Bytes size() const override { return far_->size(); }
  [[nodiscard]] std::string description() const override {
    return far_->description() + ", with checksums";
  }

 private:
  [[nodiscard]] std::span<std::uint32_t> sums_of(Bytes offset, std::size_t size) const;

  std::unique_ptr<FarStore> far_;
  std::string folder_;
  Range sums_;  // of each part; 0: it was never written
};

}  // namespace spillway::um
