#pragma once

#include <atomic>

#include "um/bytes.h"

namespace spillway::um {

/// Counts the near bytes in use against a budget: charged when a move or an allocation is issued,
/// released when the memory is really free again (after the event of an offload has fired).
///
/// Thread safety: every function may be called from any thread, and from a page-fault handler;
/// reset_peak() while nobody charges.
class Ledger {
 public:
  explicit Ledger(Bytes limit) : limit_{limit.count()} {}

  /// Counts `size` more bytes. Throws: OutOfMemory when the limit would be exceeded (nothing
  /// counted).
  void charge(Bytes size);
  /// As charge(), but says no instead of throwing.
  [[nodiscard]] bool try_charge(Bytes size) noexcept;
  /// Requires: at most what was charged.
  void release(Bytes size) noexcept { in_use_ -= size.count(); }

  [[nodiscard]] Bytes limit() const noexcept { return Bytes{limit_}; }
  [[nodiscard]] Bytes in_use() const noexcept { return Bytes{in_use_}; }
  /// The largest in_use() since construction or the last reset_peak().
  [[nodiscard]] Bytes peak() const noexcept { return Bytes{peak_}; }
  /// Requires: no charge at the same time.
  void reset_peak() noexcept { peak_ = in_use_.load(); }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> in_use_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace spillway::um
