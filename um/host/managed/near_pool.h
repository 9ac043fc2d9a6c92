#pragma once

#include <optional>
#include <vector>

#include "um/bytes.h"
#include "um/host/managed/page.h"
#include "um/ledger.h"

namespace spillway::um {

/// The slots of near memory: which are free, and the ledger's charge for each that is not.
///
/// Thread safety: one thread at a time. Allocates only when made.
class NearPool {
 public:
  /// The ledger outlives the pool.
  NearPool(SlotIndex slots, Bytes page, Ledger& ledger);
  NearPool(const NearPool&) = delete;
  NearPool& operator=(const NearPool&) = delete;
  /// Releases the charge of all slots in use.
  ~NearPool();

  /// A slot, charged; nothing when all are in use or the ledger is full.
  [[nodiscard]] std::optional<SlotIndex> take() noexcept;
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty(); }
  /// Frees `slot` and releases its charge.
  void give(SlotIndex slot) noexcept;

  /// Releases the charge of a slot that is not free yet: a released page keeps it.
  void set_aside() noexcept;
  /// Charges a slot set aside again; false when the ledger is full.
  [[nodiscard]] bool take_back() noexcept;
  /// Frees a slot set aside.
  void give_aside(SlotIndex slot) noexcept;

 private:
  const SlotIndex slots_;
  const Bytes page_;
  Ledger& ledger_;
  std::size_t aside_ = 0;
  std::vector<SlotIndex> free_;  // the last one given is taken first: its memory may be cached
};

}  // namespace spillway::um
