#include "um/host/managed/page_transfer.h"

#include <cstring>
#include <utility>

namespace spillway::um {
namespace {

constexpr int kPoison = 0xff;  // of every byte: a NaN in every floating-point type

}  // namespace

PageTransfer::PageTransfer(const ManagedOptions& options, const PageMapper& mapper,
                           std::unique_ptr<FarStore> far)
    : mapper_{mapper},
      page_{options.page},
      is_poisoned_{options.poison},
      far_{std::move(far)},
      in_{options.link},
      out_{options.link} {}

PageTransfer::Result PageTransfer::read(PageIndex page, SlotIndex slot) noexcept {
  const Link::Clock::time_point end = in_.reserve(page_);
  try {
    far_->read(page * page_, mapper_.slot(slot));
    return {.end = end, .failure = nullptr};
  } catch (...) {
    blank(slot);
    return {.end = end, .failure = std::current_exception()};
  }
}

PageTransfer::Result PageTransfer::write(PageIndex page, SlotIndex slot) noexcept {
  const Link::Clock::time_point end = out_.reserve(page_);
  try {
    far_->write(page * page_, mapper_.slot(slot));
    return {.end = end, .failure = nullptr};
  } catch (...) {
    return {.end = end, .failure = std::current_exception()};
  }
}

void PageTransfer::blank(SlotIndex slot) const noexcept {
  std::memset(mapper_.slot(slot).data(), is_poisoned_ ? kPoison : 0, page_.count());
}

}  // namespace spillway::um
