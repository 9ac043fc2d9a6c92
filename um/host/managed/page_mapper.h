#pragma once

#include <memory>
#include <string_view>

#include "um/bytes.h"
#include "um/host/managed/page.h"
#include "um/options.h"

namespace spillway::um {

/// How managed memory is divided.
struct PageGeometry {
  Bytes page;
  PageIndex pages;
  SlotIndex slots;
};

/// What a process ends with whose managed memory is not where it was.
inline constexpr std::string_view kTakenAway =
    "a part of managed memory was moved or unmapped by mremap or munmap; its place is fixed: copy "
    "what is in it, and leave its addresses to the space";

/// A mechanism that shows near slots at the addresses of pages. A touch of a page that is not
/// mapped raises a signal in the thread that touches it.
///
/// Thread safety: calls on different pages and slots may run at the same time. map() and unmap()
/// are called from page-fault handlers: they allocate nothing and take no lock; when the kernel
/// refuses, the process ends.
class PageMapper {
 public:
  virtual ~PageMapper() = default;

  /// The addresses of all pages, aligned to 2 MiB.
  [[nodiscard]] virtual Range region() const = 0;
  /// The memory of a slot. Requires: it is touched only while the slot is not mapped.
  [[nodiscard]] virtual Range slot(SlotIndex slot) const = 0;
  /// Shows the content of `slot` at `page`, at once and whole: no thread sees half of it.
  virtual void map(PageIndex page, SlotIndex slot) noexcept = 0;
  /// Takes the content of `page` back to `slot`: what a thread wrote before is in it, and a later
  /// touch faults.
  virtual void unmap(PageIndex page, SlotIndex slot) noexcept = 0;
  /// As unmap(`from`) and then map(`to`): moves the memory of `slot` from one page to another.
  virtual void remap(PageIndex from, PageIndex to, SlotIndex slot) noexcept {
    unmap(from, slot);
    map(to, slot);
  }
  /// Gives a mapped page memory, of zeros, in place of what the program has taken away of it by
  /// madvise(MADV_DONTNEED). False: nothing is missing. Called from page-fault handlers, too.
  virtual bool mend(PageIndex /*page*/) noexcept { return false; }
  /// "uffd_move"
  [[nodiscard]] virtual std::string_view name() const = 0;
};

/// Throws: Error when the mechanism asked for is not available, with the option that would work.
[[nodiscard]] std::unique_ptr<PageMapper> make_page_mapper(Paging paging,
                                                           const PageGeometry& geometry);

/// What the pages of fresh addresses allow.
enum class AddressAccess { kNone, kReadWrite };

/// Reserves `size` bytes of addresses, aligned to 2 MiB, without memory behind them; with
/// kReadWrite unknown to child processes. More than the machine has memory may be reserved. Given
/// back by release_addresses(). Throws: Error.
[[nodiscard]] Range reserve_addresses(Bytes size, AddressAccess access);

void release_addresses(Range addresses) noexcept;

}  // namespace spillway::um
