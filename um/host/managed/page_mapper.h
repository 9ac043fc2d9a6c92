#pragma once

#include <memory>
#include <string_view>

#include "um/bytes.h"
#include "um/host/managed/page.h"
#include "um/options.h"

namespace spillway::um {

/// The division of managed memory into pages and slots.
struct PageGeometry {
  Bytes page;
  PageIndex pages;
  SlotIndex slots;
};

/// The last message of a process with managed memory that was moved away.
inline constexpr std::string_view kTakenAway =
    "a part of managed memory was moved or unmapped by mremap or munmap; its place is fixed: copy "
    "what is in it, and leave its addresses to the space";

/// Maps near slots at page addresses. Touching an unmapped page raises a signal in the touching
/// thread.
///
/// Thread safety: calls on different pages and slots may run concurrently. Page-fault handlers call
/// map() and unmap(), which allocate nothing, take no lock, and end the process when the kernel
/// refuses.
class PageMapper {
 public:
  virtual ~PageMapper() = default;

  /// Returns the addresses of all pages, aligned to 2 MiB.
  [[nodiscard]] virtual Range region() const = 0;
  /// Returns the memory of a slot. Requires: it is touched only while the slot is not mapped.
  [[nodiscard]] virtual Range slot(SlotIndex slot) const = 0;
  /// Maps `slot` at `page` atomically: no thread sees a part of its content.
  virtual void map(PageIndex page, SlotIndex slot) noexcept = 0;
  /// Returns the content of `page` to `slot`, all earlier writes included; later touches fault.
  virtual void unmap(PageIndex page, SlotIndex slot) noexcept = 0;
  /// Does unmap(`from`) and map(`to`): moves the memory of `slot` between pages.
  virtual void remap(PageIndex from, PageIndex to, SlotIndex slot) noexcept {
    unmap(from, slot);
    map(to, slot);
  }
  /// Refills with zeros the parts of a mapped page that the program dropped by
  /// madvise(MADV_DONTNEED). Returns false when nothing is missing. Called from page-fault
  /// handlers, too.
  virtual bool mend(PageIndex /*page*/) noexcept { return false; }
  /// "uffd_move"
  [[nodiscard]] virtual std::string_view name() const = 0;
};

/// Throws: Error when the requested mechanism is unavailable, with an option that works.
[[nodiscard]] std::unique_ptr<PageMapper> make_page_mapper(Paging paging,
                                                           const PageGeometry& geometry);

/// The access allowed to reserved addresses.
enum class AddressAccess { kNone, kReadWrite };

/// Reserves `size` bytes of addresses, aligned to 2 MiB, without memory. Child processes do not
/// inherit kReadWrite addresses. `size` may exceed the machine's memory. The caller frees them by
/// release_addresses(). Throws: Error.
[[nodiscard]] Range reserve_addresses(Bytes size, AddressAccess access);

void release_addresses(Range addresses) noexcept;

}  // namespace spillway::um
