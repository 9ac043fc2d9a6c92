#include "prefetch/planners/modnn/offload_scheme.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Segments one after the other, of so many pages; block i is DataId{i}, and 0 means free.
std::vector<Segment> layout(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& parts) {
  std::vector<Segment> segments;
  um::Bytes offset;
  for (const auto& [block, size] : parts) {
    segments.push_back({.offset = offset, .size = pages(size), .block = std::nullopt});
    if (block != 0) segments.back().block = DataId{block};
    offset += pages(size);
  }
  return segments;
}

FindDeparture departures(std::map<std::uint32_t, Departure> known) {
  return [known = std::move(known)](DataId id) -> std::optional<Departure> {
    const auto found = known.find(static_cast<std::uint32_t>(id));
    if (found == known.end()) return std::nullopt;
    return found->second;
  };
}

// moDNN Fig. 4: block 4 must stay, an allocation of 4. Blocks 1 and 2 have 2 each, 3 has 1: from 1
// on (1)(2) is enough; from 2 or 3 on block 4 ends it. From 5 on (5)(6); from 6 on memory ends.
const std::vector<Segment> kFigure4 = layout({{1, 2}, {2, 2}, {3, 1}, {4, 3}, {5, 3}, {6, 1}});

std::map<std::uint32_t, Departure> figure4_departures() {
  std::map<std::uint32_t, Departure> all;
  for (const std::uint32_t id : {1U, 2U, 3U, 5U, 6U}) {
    all[id] = {.ready = 0ns, .duration = 20ns, .next = 9};
  }
  return all;
}

// Now is 100, Strm_D is free at 70. (1)(2) take 2 * 20: done at 110, delay 10. (5)(6) with 6 clean:
// done at 90, no delay.
TEST(OffloadScheme, IsTheOneOfFigure4ThatDelaysLeast) {
  auto all = figure4_departures();
  all[6].duration = 0ns;
  const auto scheme =
      find_scheme(kFigure4, pages(4), {.now = 100ns, .link_free = 70ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->blocks, (std::vector<DataId>{DataId{5}, DataId{6}}));
  EXPECT_EQ(scheme->delay, 0ns);
  EXPECT_EQ(scheme->offset, pages(8));
  EXPECT_EQ(scheme->size, pages(4));
}

// The same, but 5 was used up to 100: its transfer cannot start before, and delays by 20.
TEST(OffloadScheme, StartsNoTransferBeforeTheBlockIsReady) {
  auto all = figure4_departures();
  all[5].ready = 100ns;
  all[6].duration = 0ns;
  const auto scheme =
      find_scheme(kFigure4, pages(4), {.now = 100ns, .link_free = 70ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->blocks, (std::vector<DataId>{DataId{1}, DataId{2}}));
  EXPECT_EQ(scheme->delay, 10ns);
}

TEST(OffloadScheme, PrefersWhatIsUsedLastAmongEqualDelays) {
  auto all = figure4_departures();
  all[1].next = 5;  // (1)(2) are used from 5 on, (5)(6) from 9 on
  const auto scheme = find_scheme(kFigure4, pages(4), {.now = 200ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->blocks.front(), DataId{5});
}

TEST(OffloadScheme, CountsFreeSegmentsBetweenAndAfterBlocks) {
  const auto segments = layout({{1, 1}, {0, 1}, {2, 1}, {0, 1}});
  auto all = figure4_departures();
  const auto scheme = find_scheme(segments, pages(4), {.now = 100ns}, departures(all));
  ASSERT_TRUE(scheme);
  EXPECT_EQ(scheme->size, pages(4));
  EXPECT_EQ(scheme->blocks.size(), 2U);
}

// Five pages would be free or could be, but not one after the other.
TEST(OffloadScheme, IsNotFoundAcrossABlockThatMustStay) {
  const auto segments = layout({{1, 2}, {4, 1}, {5, 3}});
  EXPECT_FALSE(find_scheme(segments, pages(4), {}, departures(figure4_departures())));
}

}  // namespace
}  // namespace spillway::prefetch
