#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "um/bytes.h"
#include "um/error.h"
#include "um/range.h"

namespace spillway::um {

/// Far memory as a processor beside it reaches it: not over the link, and without near memory.
///
/// Thread safety: calls on ranges that do not overlap may run at the same time, also beside moves
/// of other ranges.
class FarSide {
 public:
  virtual ~FarSide() = default;

  /// The same bytes where they lie, when they lie in RAM; else empty.
  [[nodiscard]] virtual Range addresses(Bytes /*offset*/, Bytes /*size*/) { return {}; }
  /// Return when the bytes have been copied. Requires: address, offset and size are multiples of
  /// 4096. Throw: Error when a file cannot be read or written, or no longer holds what was written.
  virtual void read(Bytes offset, Range to) = 0;
  virtual void write(Bytes offset, std::span<const std::byte> from) = 0;
};

/// Far memory in RAM where it has addresses, whoever moves what is in it.
class FarRange final : public FarSide {
 public:
  explicit FarRange(Range memory) : memory_{memory} {}

  [[nodiscard]] Range addresses(Bytes offset, Bytes size) override {
    expects(offset.count() <= memory_.size() && size.count() <= memory_.size() - offset.count(),
            "a range of the far memory");
    return memory_.subspan(offset.count(), size.count());
  }
  void read(Bytes offset, Range to) override {
    std::ranges::copy(addresses(offset, Bytes{to.size()}), to.begin());
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    std::ranges::copy(from, addresses(offset, Bytes{from.size()}).begin());
  }

 private:
  Range memory_;
};

}  // namespace spillway::um
