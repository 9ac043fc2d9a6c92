#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "um/bytes.h"
#include "um/error.h"
#include "um/hints.h"
#include "um/options.h"

namespace spillway::um {

/// Far memory addressed by offset: other RAM, or a file. Calls return when the bytes have moved.
///
/// Thread safety: calls on ranges that do not overlap may run concurrently. read() and write()
/// allocate nothing and hold no lock, so that a page-fault handler may call them.
class FarStore : public FarSide {
 public:
  /// Requires: address, offset and size are multiples of 4096. Throws: Error when the file cannot
  /// be read or written, or its content is corrupt.
  void read(Bytes offset, Range to) override = 0;
  void write(Bytes offset, std::span<const std::byte> from) override = 0;

  [[nodiscard]] virtual Bytes size() const = 0;
  /// Describes the store, to follow the word "far": "RAM", "file in /scratch, direct I/O".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Makes `size` bytes of far memory according to `options`. A file reserves all its disk space now
/// and has no name any more, so that it always disappears with the process. Reads from a file are
/// verified by checksums unless `options` disable them. Throws: Error that names the path and the
/// problem, or how much space is missing.
[[nodiscard]] std::unique_ptr<FarStore> make_far_store(const FarOptions& options, Bytes size);

/// A far store that keeps a checksum of every 4 KiB written to it and verifies reads. The checksums
/// take 1/1024 of the store's size in RAM, allocated when first written.
class CheckedFar final : public FarStore {
 public:
  /// `folder` contains the file of `far`, for messages. Throws: OutOfMemory.
  CheckedFar(std::unique_ptr<FarStore> far, std::string folder);
  CheckedFar(const CheckedFar&) = delete;
  CheckedFar& operator=(const CheckedFar&) = delete;
  ~CheckedFar() override;

  /// Reads again when the content does not match its checksum. Does not check parts that were never
  /// written. Throws: like `far`; Error that names the folder and the offset when the second read
  /// does not match, either.
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
  Range sums_;  // per part; 0: never written
};

/// Throws: ContractError unless address, offset and size are multiples of 4096 and the range lies
/// in a far store of `store_size`.
void expect_far_access(Bytes store_size, Bytes offset, std::span<const std::byte> near,
                       Caller where = Caller::here());

/// Returns the CRC-32C (Castagnoli's polynomial), by the SSE 4.2 instruction if available,
/// otherwise by a table. Allocates nothing.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// Computes the CRC-32C of each of `sums.size()` equal parts of `bytes`, four parts at a time:
/// instructions depend on each other only within a part. Requires: the size of a part is a multiple
/// of 8.
void crc32c_of_parts(std::span<const std::byte> bytes, std::span<std::uint32_t> sums) noexcept;

/// Returns the same without the instruction. For tests.
[[nodiscard]] std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

}  // namespace spillway::um
