#pragma once

#include "um/host/managed/page_mapper.h"

namespace spillway::um {

/// Maps slots of an in-memory file at page addresses, on any Linux. Touching a missing page raises
/// SIGSEGV. It raises SIGBUS where the program has allowed access by mprotect(), since an empty
/// file is mapped there.
class MemfdSegv final : public PageMapper {
 public:
  /// Allocates all near memory now. Throws: Error; OutOfMemory.
  explicit MemfdSegv(const PageGeometry& geometry);
  MemfdSegv(const MemfdSegv&) = delete;
  MemfdSegv& operator=(const MemfdSegv&) = delete;
  ~MemfdSegv() override;

  [[nodiscard]] Range region() const override { return region_; }
  [[nodiscard]] Range slot(SlotIndex slot) const override {
    return slots_.subspan(slot * page_, page_);
  }
  void map(PageIndex page, SlotIndex slot) noexcept override;
  void unmap(PageIndex page, SlotIndex slot) noexcept override;
  [[nodiscard]] std::string_view name() const override { return "memfd_segv"; }

 private:
  void map_slots(Bytes size);
  [[nodiscard]] bool map_nothing(std::size_t offset, std::size_t size) const noexcept;
  void release() noexcept;

  std::size_t page_;
  int descriptor_ = -1;
  int nothing_ = -1;  // an empty file, mapped where nothing is near
  Range region_;
  Range slots_;
};

}  // namespace spillway::um
