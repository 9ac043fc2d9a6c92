#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "um/hints.h"
#include "um/host/managed/page.h"

namespace spillway::um {

/// The pages that may be evicted, in the order in which to do it: those preferred far, then those
/// without such advice, then those preferred near; within each, the one used longest ago first.
///
/// Complexity: O(1) each; allocates only when made.
class EvictionOrder {
 public:
  explicit EvictionOrder(PageIndex pages);

  /// Adds `page` as the one used last of its kind. Requires: it is not in the order.
  void append(PageIndex page, Advice advice) noexcept;
  /// Requires: `page` is in the order.
  void remove(PageIndex page) noexcept;
  /// The page to evict next.
  [[nodiscard]] std::optional<PageIndex> first() const noexcept;

 private:
  /// Neighbours in a ring; each kind of advice has a ring with a head that is no page.
  struct Links {
    std::uint64_t older;
    std::uint64_t newer;
  };

  static constexpr std::uint64_t kRings = 3;

  std::uint64_t pages_;
  std::vector<Links> links_;  // of each page, then of each ring's head
};

}  // namespace spillway::um
