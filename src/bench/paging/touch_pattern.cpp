#include "src/bench/paging/touch_pattern.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "src/bench/name_of.h"
#include "src/io/random.h"

namespace spillway {
namespace {

constexpr std::size_t kStrideInPages = 8;
constexpr std::uint64_t kSeed = 7;

constexpr std::array kPatternNames{"stream", "stride", "reverse", "random"};
static_assert(kPatternNames.size() == static_cast<std::size_t>(TouchPattern::kRandom) + 1);

std::vector<std::size_t> strided(std::size_t pages) {
  std::vector<std::size_t> order;
  for (std::size_t first = 0; first < kStrideInPages; ++first) {
    for (std::size_t page = first; page < pages; page += kStrideInPages) order.push_back(page);
  }
  return order;
}

std::vector<std::size_t> drawn(std::size_t pages) {
  Random random{kSeed, pages};
  std::vector<std::size_t> order(pages);
  std::ranges::generate(order, [&] { return random.next() % pages; });
  return order;
}

}  // namespace

std::string to_string(TouchPattern pattern) {
  return kPatternNames.at(static_cast<std::size_t>(pattern));
}

std::optional<TouchPattern> find_pattern(const std::string& name) {
  return find_named<TouchPattern>(kPatternNames, name);
}

std::vector<std::size_t> touch_order(TouchPattern pattern, std::size_t pages) {
  if (pattern == TouchPattern::kStride) return strided(pages);
  if (pattern == TouchPattern::kRandom) return drawn(pages);
  std::vector<std::size_t> order(pages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (pattern == TouchPattern::kReverse) std::ranges::reverse(order);
  return order;
}

}  // namespace spillway
