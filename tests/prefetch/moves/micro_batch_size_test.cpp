#include "prefetch/moves/micro_batch_size.h"

#include <gtest/gtest.h>

#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

MicroBatchNeed need_of(std::uint64_t page_count) {
  return {.weights = {}, .fastest = pages(page_count), .min = pages(page_count)};
}

TEST(BatchCut, AreAsEqualAsPossible) {
  EXPECT_EQ(cut(256, 256), (BatchCut{.size = 256, .count = 1}));
  EXPECT_EQ(cut(256, 300), (BatchCut{.size = 256, .count = 1}));
  EXPECT_EQ(cut(256, 200), (BatchCut{.size = 128, .count = 2}));
  EXPECT_EQ(cut(100, 30), (BatchCut{.size = 25, .count = 4}));
  EXPECT_EQ(cut(7, 3), (BatchCut{.size = 3, .count = 3}));
}

// Eq. 1: conv reads 2 pages, writes 3; its fastest algorithm adds 4, its first 1. The weights and
// the small tensor are always near.
TEST(MicroBatchNeed, CountsOperandsAndTheWorkspaceOfTheFastestAlgorithm) {
  TaskGraph graph = toy_graph("w:5 x:2 y:3", "x = load(); y = conv(w, x)");
  graph.data[0].kind = DataKind::kState;
  graph.tasks[1].algorithms = {{.name = "direct", .workspace = pages(1)},
                               {.name = "fast", .workspace = pages(4)},
                               {.name = "huge", .workspace = pages(9)}};
  Profile profile = flat_profile(graph, 10ns);
  profile.durations[1] = {10ns, 5ns, 7ns};
  const MicroBatchNeed need = micro_batch_need(graph, profile, kPage);
  EXPECT_EQ(need.weights, pages(5));
  EXPECT_EQ(need.fastest, pages(9));
  EXPECT_EQ(need.min, pages(6));
}

// Ten pages per sample and a workspace of 20, in 100 pages: from 32, 32 * 100 / 340 = 9.4, then 9 *
// 100 / 110 = 8.2, then 8 * 100 / 100 = 8.
TEST(ConvergedMicroBatches, AreAFixedPointOfEquation3) {
  std::vector<std::size_t> profiled;
  const auto batches = converge_micro_batches(32, pages(100), [&](std::size_t size) {
    profiled.push_back(size);
    return need_of(10 * size + 20);
  });
  EXPECT_EQ(batches, (BatchCut{.size = 8, .count = 4}));
  EXPECT_EQ(profiled, (std::vector<std::size_t>{32, 9, 8}));
}

TEST(ConvergedMicroBatches, AreTheWholeBatchWhereItFits) {
  const auto batches = converge_micro_batches(
      32, pages(340), [](std::size_t size) { return need_of(10 * size + 20); });
  EXPECT_EQ(batches, (BatchCut{.size = 32, .count = 1}));
}

// From 8 samples on there is a workspace of 60 pages: 32 -> 8 (3200 / 380), 8 -> 5 (800 / 140), 5
// -> 10 (500 / 50), 10 -> 6 (1000 / 160), 6 -> 10 (600 / 60), and so on. Among these sizes, 5 and 6
// fit.
TEST(ConvergedMicroBatches, AreTheLargestThatFitWhereSizesOscillate) {
  int calls = 0;
  const auto batches = converge_micro_batches(32, pages(100), [&](std::size_t size) {
    ++calls;
    return need_of(10 * size + (size >= 8 ? 60 : 0));
  });
  EXPECT_EQ(batches, (BatchCut{.size = 6, .count = 6}));
  EXPECT_EQ(calls, 5);
}

// One sample fits with its first algorithm, but not with its fast one.
TEST(ConvergedMicroBatches, AreSingleSamplesWhereOnlyTheFirstAlgorithmsFit) {
  const auto need = [](std::size_t size) {
    return MicroBatchNeed{
        .weights = pages(10), .fastest = pages(10 * size + 50), .min = pages(10 * size)};
  };
  EXPECT_EQ(converge_micro_batches(4, pages(20), need), (BatchCut{.size = 1, .count = 4}));
  EXPECT_FALSE(converge_micro_batches(4, pages(19), need));
}

// One step does not fit; two take 50, three 45, and four take at least 46.
TEST(SearchedMicroBatches, StopWhereSmallerOnesCannotWin) {
  std::vector<std::size_t> tried;
  std::optional<um::Nanoseconds> to_beat;
  const auto attempt = [&](const BatchCut& candidate, auto shortest) -> MicroBatchTrial {
    tried.push_back(candidate.count);
    to_beat = shortest;
    switch (candidate.count) {
      case 1:
        return {.total = std::nullopt, .bound = 10ns};
      case 2:
        return {.total = 50ns, .bound = 40ns};
      case 3:
        return {.total = 45ns, .bound = 44ns};
      default:
        return {.total = 1ns, .bound = 46ns};
    }
  };
  const auto batches = search_micro_batches(32, attempt);
  EXPECT_EQ(batches, (BatchCut{.size = 11, .count = 3}));
  EXPECT_EQ(tried, (std::vector<std::size_t>{1, 2, 3, 4}));
  EXPECT_EQ(to_beat, 45ns);
}

// Five samples: 5, 3, 2 and 1 at a time; four micro-batches would have size two again.
TEST(SearchedMicroBatches, TryEachSizeOnce) {
  std::vector<std::size_t> sizes;
  const auto batches =
      search_micro_batches(5, [&](const BatchCut& candidate, auto) -> MicroBatchTrial {
        sizes.push_back(candidate.size);
        return {};
      });
  EXPECT_FALSE(batches);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{5, 3, 2, 1}));
}

TEST(SearchedMicroBatches, PreferTheLargestOfEquallyFast) {
  const auto batches = search_micro_batches(
      32, [](const BatchCut&, auto) { return MicroBatchTrial{.total = 50ns, .bound = 10ns}; });
  EXPECT_EQ(batches, (BatchCut{.size = 32, .count = 1}));
}

}  // namespace
}  // namespace spillway::prefetch
