#include "um/dropin/space_options.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "um/dropin/misuse.h"

namespace spillway::um {
namespace {

constexpr Bytes kSmallestPage = 4_KiB;
constexpr Bytes kLargestPage = 2_MiB;
/// Near memory of fewer pages leaves an eviction little to choose among.
constexpr std::uint64_t kFewPages = 16;
/// Above, sizes rounded up to pages would not fit in 64 bits, nor in any address space.
constexpr Bytes kTooMuch{std::uint64_t{1} << 56U};

Bytes chosen_page(Bytes near, bool evicts) {
  if (!evicts) return kLargestPage;  // the driver's own unit
  Bytes page = kLargestPage;
  while (page > kSmallestPage && near / page < kFewPages) page = Bytes{page.count() / 2};
  return page;
}

void expect_sound(const SpaceOptions& options, bool evicts) {
  if (options.near == Bytes{}) throw Misuse{"no near memory; give near_bytes"};
  if (options.capacity == Bytes{}) throw Misuse{"no capacity; give capacity_bytes"};
  if (options.capacity > kTooMuch || options.near > kTooMuch) {
    throw Misuse{"a space of " + to_string(std::max(options.capacity, options.near)) +
                 "; give at most " + to_string(kTooMuch)};
  }
  if (options.page == Bytes{}) return;
  const bool is_size = evicts ? options.page >= kSmallestPage && options.page <= kLargestPage
                              : options.page >= kLargestPage;
  const bool is_page = is_size && std::has_single_bit(options.page.count());
  if (!is_page) {
    throw Misuse{"pages of " + to_string(options.page) +
                 (evicts ? "; give a power of two from 4 KiB to 2 MiB, or 0"
                         : "; give a power of two of at least 2 MiB, or 0")};
  }
}

}  // namespace

ManagedOptions managed_options(const SpaceOptions& options, bool evicts) {
  expect_sound(options, evicts);
  const Bytes page = options.page == Bytes{} ? chosen_page(options.near, evicts) : options.page;
  const Bytes size = round_up(options.capacity, page);
  const Bytes near = round_down(options.near, page);
  // An instruction may touch two pages at once.
  if (near < std::min(2 * page, size)) {
    throw Misuse{"near memory of " + to_string(options.near) + " does not hold two pages of " +
                 to_string(page) + "; give it more, or use smaller pages"};
  }
  if (size / page >= std::numeric_limits<std::uint32_t>::max()) {
    throw Misuse{to_string(size) + " are too many pages of " + to_string(page) +
                 "; use larger pages, or more near memory, which allows them"};
  }
  // A GPU's driver discards in the order of a stream that the program's own do not wait for: what
  // they write early would be dropped. Discarded pages stay near there until they are overwritten.
  // A device that evicts by itself drops them in the order of the calls.
  return {.size = size,
          .near = near,
          .page = page,
          .far = options.far,
          .link = options.link,
          .paging = options.paging,
          .writes_are_declared = false,
          .gpu = {.oversubscribe = options.oversubscribe,
                  .discards = evicts ? std::nullopt : std::optional{false}}};
}

}  // namespace spillway::um
