#include "prefetch/runtime/step_layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/runtime/step_modes.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// "make" writes x (3 pages) with a workspace of 5000 bytes: two pages. "double" updates x in place
// with a workspace of 100 bytes: too small for a page. "sum" reads x and writes the small tensor s.
class StepLayoutTest : public ::testing::Test {
 protected:
  StepLayoutTest() {
    x = graph.add(DataBlock{.name = "x", .size = pages(3)});
    s = graph.add(DataBlock{.name = "s", .size = 16_B});
    w = graph.add(DataBlock{.name = "w", .size = 100_B, .kind = DataKind::kState});
    graph.add(Task{.name = "make", .reads = {w}, .writes = {x}, .algorithms = {{"a", 5000_B}}});
    graph.add(Task{.name = "double", .reads = {x}, .writes = {x}, .algorithms = {{"a", 100_B}}});
    graph.add(Task{.name = "sum", .reads = {x}, .writes = {s}});
    plan = plain_plan(graph, pages(6));
  }
  TaskGraph graph;
  DataId x{}, s{}, w{};
  Plan plan;
};

TEST_F(StepLayoutTest, NotesWhatEachRunBeginsUsesAndEnds) {
  const StepLayout layout{graph, plan};
  ASSERT_EQ(layout.runs.size(), 3U);
  EXPECT_EQ(layout.runs[0].begins, std::vector{x});
  EXPECT_TRUE(layout.runs[1].begins.empty());
  EXPECT_TRUE(layout.runs[1].ends.empty());
  EXPECT_EQ(layout.runs[2].ends, std::vector{x});
  EXPECT_TRUE(layout.runs[2].begins.empty());  // s is small: it never moves
  const um::Access accesses[] = {um::Access::kWrite, um::Access::kReadWrite, um::Access::kRead};
  for (Position p = 0; p < 3; ++p) {
    ASSERT_EQ(layout.runs[p].operands.size(), 1U);
    EXPECT_EQ(layout.runs[p].operands[0].data, x);
    EXPECT_EQ(layout.runs[p].operands[0].access, accesses[p]);
  }
}

TEST_F(StepLayoutTest, GivesALargeWorkspacePagesAndASmallOneTheSharedBuffer) {
  const StepLayout layout{graph, plan};
  EXPECT_EQ(layout.runs[0].workspace, pages(2));
  EXPECT_FALSE(layout.runs[0].has_small_workspace);
  EXPECT_EQ(layout.runs[1].workspace, 0_B);
  EXPECT_TRUE(layout.runs[1].has_small_workspace);
  EXPECT_EQ(layout.runs[2].workspace, 0_B);
  EXPECT_FALSE(layout.runs[2].has_small_workspace);
  EXPECT_EQ(layout.placement.extent, pages(5));  // x beside the workspace of "make"
}

TEST_F(StepLayoutTest, PinnedBlocksHoldStateSmallTensorsAndTheSmallWorkspace) {
  const Stage stage{graph, plan};
  // 100 bytes of workspace take 128, s takes 64.
  EXPECT_EQ(PinnedBlocks::buffer_size(graph, stage.layout.block_sizes), 192_B);
  const PinnedBlocks& near = stage.pinned;
  EXPECT_EQ(near.address(x), nullptr);
  EXPECT_EQ(near.address(w), stage.state.addresses()[2]);
  EXPECT_EQ(near.address(s), near.small_workspace() + 128);
}

TEST_F(StepLayoutTest, SlabAddressFindsBlocksWorkspacesAndPartsOfBlocks) {
  const Stage stage{graph, plan};
  std::vector<std::uint64_t> words(5 * kPage.count() / 8);
  const um::Range slab = std::as_writable_bytes(std::span{words});
  const SlabAddress address{stage.layout, stage.pinned, slab};
  EXPECT_EQ(address.block(x), slab.data());  // the larger: placed first, at 0
  EXPECT_EQ(address.workspace(0), slab.data() + pages(3).count());
  EXPECT_EQ(address.workspace(1), stage.pinned.small_workspace());
  EXPECT_EQ(address.workspace(2), nullptr);
  EXPECT_TRUE(address.workspace_pages(2).empty());
  EXPECT_EQ(address.block(s), stage.pinned.address(s));
  const um::Range part =
      address.pages(Move{.data = x, .offset = pages(1), .size = pages(2), .after = {}});
  EXPECT_EQ(part.data(), slab.data() + pages(1).count());
  EXPECT_EQ(part.size(), pages(2).count());
  EXPECT_THROW((SlabAddress{stage.layout, stage.pinned, slab.first(4 * kPage.count())}),
               um::ContractError);
}

TEST_F(StepLayoutTest, SlabAddressPutsWorkspacesBesideTheSlabWhereTheyFit) {
  const Stage stage{graph, plan};
  std::vector<std::uint64_t> words(7 * kPage.count() / 8);
  const um::Range memory = std::as_writable_bytes(std::span{words});
  const um::Range slab = memory.first(5 * kPage.count());
  const um::Range beside = memory.subspan(slab.size());
  const SlabAddress address{stage.layout, stage.pinned, slab, beside};
  EXPECT_EQ(address.workspace(0), beside.data());
  EXPECT_TRUE(address.workspace_pages(0).empty());
  EXPECT_EQ(address.workspace(1), stage.pinned.small_workspace());
  EXPECT_EQ(address.workspace(2), nullptr);
  const SlabAddress small{stage.layout, stage.pinned, slab, beside.first(kPage.count())};
  EXPECT_EQ(small.workspace(0), slab.data() + pages(3).count());
  EXPECT_EQ(small.workspace_pages(0).size(), pages(2).count());
}

// x (3 pages) is dropped and recomputed; z (3 pages) lives meanwhile.
TEST_F(StepLayoutTest, GivesTheAddressesOfADroppedBlockToOthers) {
  TaskGraph step = toy_graph(
      "x:3 z:3 s:0", "x = make x(); s = use x(x); z = make z(); s = use z(z); s = use x again(x)");
  step.data[2].size = 16_B;
  Plan dropping = plain_plan(step, pages(6));
  dropping.runs.insert(dropping.runs.begin() + 4,
                       TaskRun{.task = TaskId{0}, .is_recomputation = true});
  EXPECT_EQ(StepLayout(step, dropping).placement.extent, pages(3));
}

struct Tenancy {
  um::Bytes begin, end;
  Position first, last;
};

// Concurrent blocks and workspaces never share an address, everything lies on pages within the
// extent, and the extent is at most the total size.
RC_GTEST_PROP(Placement, NeverPutsTwoThingsInOnePlaceAtOneTime, ()) {
  const TaskGraph graph = random_graph({.has_offloadable_weights = false});
  const Profile profile = random_profile(graph);
  Problem given{.graph = graph, .profile = profile, .budget = {}, .page = kPage};
  given.budget = near_need(graph, BlockSizes{graph, kPage}).smallest + pages(2);
  given.may_recompute = true;
  const Plan plan = planned("joint", given);
  const StepLayout layout{graph, plan};
  std::vector<Tenancy> all;
  um::Bytes total;
  const auto add = [&](um::Bytes offset, um::Bytes size, Position first, Position last) {
    if (size > 0_B) all.push_back({offset, offset + size, first, last});
    total += size;
  };
  for (const Life& life : find_lives(graph, plan.runs)) {
    add(layout.placement.blocks[static_cast<std::size_t>(life.data)],
        layout.block_sizes.size(life.data), life.begin(), life.last());
  }
  for (Position p = 0; p < plan.runs.size(); ++p) {
    add(layout.placement.workspaces[p], layout.runs[p].workspace, p, p);
  }
  RC_ASSERT(layout.placement.extent <= total);
  for (const Tenancy& a : all) {
    RC_ASSERT(a.begin.count() % kPage.count() == 0U);
    RC_ASSERT(a.end <= layout.placement.extent);
    for (const Tenancy& b : all) {
      if (&a == &b || a.first > b.last || b.first > a.last) continue;
      RC_ASSERT(a.end <= b.begin || b.end <= a.begin);
    }
  }
}

}  // namespace
}  // namespace spillway::prefetch
