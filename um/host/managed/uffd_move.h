#pragma once

#include <optional>

#include "um/host/managed/page_mapper.h"
#include "um/host/managed/remap_events.h"
#include "um/host/managed/uffd_calls.h"
#include "um/threads/back_off.h"

namespace spillway::um {

/// Moves physical pages between slots and pages by UFFDIO_MOVE (Linux 6.8 or newer, no privilege
/// needed): no copy, and 1 us for a huge page. A touch of a missing page raises SIGBUS. While the
/// kernel itself holds a page, a move waits for it, up to 10 s. What the program has made of a page
/// by mprotect(), mlock() or madvise() and what keeps it from being moved is undone.
class UffdMove final : public PageMapper {
 public:
  /// Takes all near memory now, and moves one page to and fro. Throws: Error that says, as half a
  /// sentence, why the kernel refuses; OutOfMemory.
  explicit UffdMove(const PageGeometry& geometry, UffdCalls calls = {});
  UffdMove(const UffdMove&) = delete;
  UffdMove& operator=(const UffdMove&) = delete;
  ~UffdMove() override;

  [[nodiscard]] Range region() const override { return region_; }
  [[nodiscard]] Range slot(SlotIndex slot) const override {
    return slots_.subspan(slot * page_, page_);
  }
  void map(PageIndex page, SlotIndex slot) noexcept override;
  void unmap(PageIndex page, SlotIndex slot) noexcept override;
  void remap(PageIndex from, PageIndex to, SlotIndex slot) noexcept override;
  [[nodiscard]] bool mend(PageIndex page) noexcept override;
  [[nodiscard]] std::string_view name() const override { return "uffd_move"; }

 private:
  void open();
  void prepare();
  void register_range(Range range) const;
  /// How much of a page is at `to` already, of which so much is known to be, although the kernel
  /// says that it is not.
  [[nodiscard]] std::size_t skip_moved(const std::byte* to, const std::byte* from,
                                       std::size_t moved) const noexcept;
  /// Gives a hole in a page memory of zeros. Returns 0 or an errno: EEXIST where there is none.
  [[nodiscard]] int fill(std::byte* small_page, BackOff& waits) const noexcept;
  /// Undoes mprotect() and mlock() of two pages.
  void make_alike(std::byte* one, std::byte* other) const noexcept;
  /// Gives the process a page of its own where a child shares it.
  void unshare(std::byte* page) const noexcept;
  /// Returns 0 or an errno.
  [[nodiscard]] int move(std::byte* to, std::byte* from) const noexcept;
  void move_or_die(std::byte* to, std::byte* from) const noexcept;
  [[nodiscard]] std::byte* address(PageIndex page) const { return region_.data() + page * page_; }
  void release() noexcept;

  UffdCalls calls_;
  std::size_t page_;
  int descriptor_ = -1;
  Range region_;
  Range slots_;
  std::optional<RemapEvents> remaps_;
};

}  // namespace spillway::um
