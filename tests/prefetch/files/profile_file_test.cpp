#include "prefetch/files/profile_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/files/graph_stamp.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/refusal.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using test::refusal;
using namespace std::chrono_literals;
using nlohmann::json;

RC_GTEST_PROP(ProfileFile, GivesBackEveryProfile, ()) {
  const TaskGraph graph = random_graph();
  Profile profile = random_profile(graph);
  profile.link.compute_speed_while_moving = 0.625;
  profile.link.faults = {.time = 7us,
                         .spare_overwritten = *rc::gen::arbitrary<bool>(),
                         .evict_by_use = *rc::gen::arbitrary<bool>()};
  const Profile read = read_profile(JsonFile{to_json(profile, graph).dump(), "p"}, graph);
  RC_ASSERT(read.source == profile.source);
  RC_ASSERT(read.graph == profile.graph);
  RC_ASSERT(read.durations == profile.durations);
  RC_ASSERT(to_json(read.link) == to_json(profile.link));
}

class TamperedProfile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string complaint() const {
    return refusal([&] { return read_profile(JsonFile{file.dump(), "p"}, graph); });
  }
  TaskGraph graph = chain(2, pages(1));
  json file = to_json(flat_profile(graph, 100ns), graph);
};

TEST_F(TamperedProfile, IsReadWhenNobodyTampered) { EXPECT_EQ(complaint(), "accepted"); }

TEST_F(TamperedProfile, IsRefusedForAnotherGraph) {
  EXPECT_EQ(file["graph"], graph_stamp(fingerprint(graph)));
  graph = chain(2, pages(2));  // the same tasks, as with a larger batch
  EXPECT_EQ(
      complaint(),
      "p: graph belongs to another step or machine (" + std::string{file["graph"]} + ", here " +
          graph_stamp(fingerprint(graph)) +
          "): give the --net, --batch, --image-size, --classes, --aux-heads, --optimizer, "
          "--conv-algorithm and --threads, and the --device, --precision and --deterministic of "
          "a GPU, that it was made with, or make it again");
}

TEST_F(TamperedProfile, IsRefusedWithOtherTasksThanItsGraph) {
  file["tasks"][1]["task"] = "g1";
  EXPECT_EQ(complaint(), "p: tasks[1].task is 'g1', not f1");
  file["tasks"].erase(0);  // load, f1, f2, loss, b2, b1: six tasks
  EXPECT_EQ(complaint(), "p: tasks are 5, but the network here has 6");
}

TEST_F(TamperedProfile, IsRefusedWithoutTheTimeOfAnAlgorithm) {
  file["tasks"][0]["duration_ns"] = json::object();
  EXPECT_EQ(complaint(), "p: tasks[0].duration_ns.default is missing");
}

TEST_F(TamperedProfile, IsRefusedWithTimesThatAreNone) {
  file["tasks"][0]["duration_ns"]["default"] = -5;
  EXPECT_EQ(complaint(), "p: tasks[0].duration_ns.default is no whole number from 0 up");
  file["tasks"][0]["duration_ns"]["default"] = 2'000'000'000'000'000;
  EXPECT_EQ(complaint(), "p: tasks[0].duration_ns.default is larger than 1000000000000000");
}

TEST_F(TamperedProfile, IsRefusedWithALinkThatIsNone) {
  file["link"]["offload_bytes_per_second"] = 0;
  EXPECT_EQ(complaint(), "p: link.offload_bytes_per_second is zero");
  file["link"]["offload_bytes_per_second"] = 999;
  EXPECT_EQ(complaint(), "p: link.offload_bytes_per_second is smaller than 1000");
  file["link"]["offload_bytes_per_second"] = 1000;
  file["link"]["compute_speed_while_moving"] = 1.5;
  EXPECT_EQ(complaint(), "p: link.compute_speed_while_moving is larger than 1");
}

}  // namespace
}  // namespace spillway::prefetch
