#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>

#include "um/bytes.h"
#include "um/options.h"

namespace spillway::um {

/// One direction of the link between near and far memory. Computes when each transfer ends at the
/// requested bandwidth and latency. Transfers queue behind each other.
///
/// Thread safety: any thread and a page-fault handler may call every function.
class Link {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Link(const LinkOptions& options) : options_{options} {}

  /// Reserves the link for a transfer of `size` that starts now or when the link is free. Returns
  /// the transfer's end: latency plus size / bandwidth later. Without a bandwidth only the latency
  /// counts.
  [[nodiscard]] Clock::time_point reserve(Bytes size) noexcept;

  /// Returns how long `size` occupies the link without the latency, to pace the parts of a
  /// transfer.
  [[nodiscard]] Nanoseconds time_of(Bytes size) const noexcept;

 private:
  LinkOptions options_;
  std::atomic<Clock::rep> free_at_{0};
};

/// Copies `from` to `to`; bypasses the caches for large, aligned pieces on x86. Allocates nothing,
/// so that a page-fault handler may call it. Requires: both have the same size and do not overlap.
void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace spillway::um
