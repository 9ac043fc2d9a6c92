#pragma once

#include <memory>
#include <span>
#include <string>

#include "um/bytes.h"
#include "um/far_side.h"
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

}  // namespace spillway::um
