#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "um/bytes.h"
#include "um/error.h"
#include "um/options.h"

namespace spillway::um {

/// Far memory addressed by offset: other RAM, or a file. Calls return when the bytes have moved.
///
/// Thread safety: calls on ranges that do not overlap may run at the same time. read() and write()
/// allocate nothing and hold no lock, so that a page-fault handler may call them.
class FarStore : public FarSide {
 public:
  /// Requires: address, offset and size are multiples of 4096.
  /// Throws: Error when the file cannot be read or written, or no longer holds what was written.
  void read(Bytes offset, Range to) override = 0;
  void write(Bytes offset, std::span<const std::byte> from) override = 0;

  [[nodiscard]] virtual Bytes size() const = 0;
  /// For the description of a space, after "far": "RAM", "file in /scratch, direct I/O".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Far memory of `size` bytes as `options` ask for. A file gets all its room on disk now and has no
/// name any more when this returns, so that it is gone when the process ends, however it ends.
/// What is read from a file is checked by checksums unless `options` say otherwise.
/// Throws: Error that names the path and says what is wrong with it, or how much room is missing.
[[nodiscard]] std::unique_ptr<FarStore> make_far_store(const FarOptions& options, Bytes size);

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

/// Throws ContractError unless address, offset and size are multiples of 4096 and the range lies in
/// a far store of `store_size`.
void expect_far_access(Bytes store_size, Bytes offset, std::span<const std::byte> near,
                       Caller where = Caller::here());

}  // namespace spillway::um
