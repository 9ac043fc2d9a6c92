#include "um/host/managed/eviction_order.h"

namespace spillway::um {
namespace {

std::uint64_t ring_of(Advice advice) {
  if (advice == Advice::kPreferFar) return 0;
  return advice == Advice::kPreferNear ? 2 : 1;
}

}  // namespace

EvictionOrder::EvictionOrder(PageIndex pages) : pages_{pages}, links_(pages_ + kRings) {
  for (std::uint64_t head = pages_; head < pages_ + kRings; ++head) links_[head] = {head, head};
}

void EvictionOrder::append(PageIndex page, Advice advice) noexcept {
  const std::uint64_t head = pages_ + ring_of(advice);
  const std::uint64_t newest = links_[head].older;
  links_[page] = {.older = newest, .newer = head};
  links_[newest].newer = page;
  links_[head].older = page;
}

void EvictionOrder::remove(PageIndex page) noexcept {
  const Links links = links_[page];
  links_[links.older].newer = links.newer;
  links_[links.newer].older = links.older;
}

std::optional<PageIndex> EvictionOrder::first() const noexcept {
  for (std::uint64_t head = pages_; head < pages_ + kRings; ++head) {
    if (links_[head].newer != head) return static_cast<PageIndex>(links_[head].newer);
  }
  return std::nullopt;
}

}  // namespace spillway::um
