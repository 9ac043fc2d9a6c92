// Files of every kind except traces, each with one defect: the error names the place and the cause.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/files/trace.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/tampered.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_files.h"
#include "tests/temporary_folder.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using nlohmann::json;
using test::refusal;

// Defects of the link of a machine or a profile.
constexpr std::array kLinkTamperings{
    Tampering{"/link", "", "missing"},
    Tampering{"/link", "[]", "no object"},
    Tampering{"/link/offload_bytes_per_second", "", "missing"},
    Tampering{"/link/offload_bytes_per_second", "null", "no number"},
    Tampering{"/link/offload_bytes_per_second", "0", "zero"},
    Tampering{"/link/offload_bytes_per_second", "999", "smaller than 1000"},
    Tampering{"/link/prefetch_bytes_per_second", "0", "zero"},
    Tampering{"/link/prefetch_bytes_per_second", "-1", "negative or too large"},
    Tampering{"/link/latency_ns", "", "missing"},
    Tampering{"/link/latency_ns", "1.5", "no whole number from 0 up"},
    Tampering{"/link/latency_ns", "1000000000000001", "larger than 1000000000000000"},
    Tampering{"/link/duplex", "1", "neither true nor false"},
    Tampering{"/link/compute_speed_while_moving", "0", "zero"},
    Tampering{"/link/compute_speed_while_moving", "1.01", "larger than 1"},
    Tampering{"/link/compute_speed_while_updating", "0", "zero"},
    Tampering{"/link/compute_speed_while_updating", "1.01", "larger than 1"},
    Tampering{"/link/far_update_bytes_per_second", "null", "no number"},
    Tampering{"/link/far_update_bytes_per_second", "999", "smaller than 1000"},
    Tampering{"/link/fault_ns", "-1", "no whole number from 0 up"},
    Tampering{"/link/fault_ns", "1000000000000001", "larger than 1000000000000000"},
    Tampering{"/link/faults_spare_overwritten", "1", "neither true nor false"},
    Tampering{"/link/faults_evict_by_use", "\"no\"", "neither true nor false"},
};

constexpr std::array kMachineTamperings{
    Tampering{"/format", "\"machine\"", "'machine', not 'spillway-machine'"},
    Tampering{"/format", "", "missing"},
    Tampering{"/version", "0", "reads version 1"},
    Tampering{"/version", "\"1\"", "no whole number from 0 up"},
    Tampering{"/name", "", "missing"},
    Tampering{"/name", "3", "no string"},
    Tampering{"/near_memory_bytes", "", "missing"},
    Tampering{"/near_memory_bytes", "-4096", "no whole number from 0 up"},
    Tampering{"/near_memory_bytes", "1e12", "no whole number from 0 up"},
    Tampering{"/flops_per_second", "", "missing"},
    Tampering{"/flops_per_second", "0", "zero"},
    Tampering{"/flops_per_second", "-1e12", "negative or too large"},
    Tampering{"/flops_per_second", "999", "smaller than 1000"},
    Tampering{"/flops_per_second", "1e-300", "smaller than 1000"},
    Tampering{"/compute_efficiency", "2", "larger than 1"},
    Tampering{"/compute_efficiency", "0", "zero"},
    Tampering{"/compute_efficiency", "0.0001", "smaller than 0.001"},
    Tampering{"/memory_bytes_per_second", "\"fast\"", "no number"},
    Tampering{"/memory_bytes_per_second", "1e-300", "smaller than 1000"},
    Tampering{"/memory_efficiency", "null", "no number"},
};

class BadMachine : public ::testing::Test {
 protected:
  test::TemporaryFolder folder;
  std::string path = folder.file("machine.json");
};

TEST_F(BadMachine, IsRefusedWithThePlaceOfWhatIsWrong) {
  const auto read = [&](const json& file) {
    write_json(file, path);
    return find_machine(path);
  };
  expect_refusals(small_machine(), path, kMachineTamperings, read);
  expect_refusals(small_machine(), path, kLinkTamperings, read);
}

TEST_F(BadMachine, IsRefusedWhenItIsNoFileOfText) {
  std::ofstream{path} << "name: toy";
  EXPECT_EQ(refusal([&] { return find_machine(path); }), path + ": not JSON, at byte 2");
  EXPECT_EQ(refusal([&] { return find_machine("/dev/zero"); }),
            "cannot read /dev/zero: it is no ordinary file");
}

constexpr std::array kProfileTamperings{
    Tampering{"/format", "null", "no string"},
    Tampering{"/format", "\"spillway-trace\"", "'spillway-trace', not 'spillway-profile'"},
    Tampering{"/version", "", "missing"},
    Tampering{"/version", "3", "reads version 1"},
    Tampering{"/source", "", "missing"},
    Tampering{"/source", "[]", "no string"},
    Tampering{"/source", "\"\\u0007\"", "control character"},
    Tampering{"/graph", "", "missing"},
    Tampering{"/graph", "1234", "no string"},
    Tampering{"/graph", "\"other\"", "another step or machine"},
    Tampering{"/tasks", "", "missing"},
    Tampering{"/tasks", "{}", "no array"},
    Tampering{"/tasks/5", "", "are 5, but the network here has 6", "tasks"},
    Tampering{"/tasks/2", "3", "no object"},
    Tampering{"/tasks/2/task", "", "missing"},
    Tampering{"/tasks/2/task", "\"Update\"", "'Update', not Loss"},
    Tampering{"/tasks/2/duration_ns", "", "missing"},
    Tampering{"/tasks/2/duration_ns", "300", "no object"},
    Tampering{"/tasks/4/duration_ns/fast", "", "missing"},
    Tampering{"/tasks/4/duration_ns/fast", "\"1s\"", "no whole number from 0 up"},
    Tampering{"/tasks/4/duration_ns/fast", "-5", "no whole number from 0 up"},
    Tampering{"/tasks/4/duration_ns/fast", "2000000000000000", "larger than 1000000000000000"},
};

TEST(BadProfile, IsRefusedWithThePlaceOfWhatIsWrong) {
  const Trace trace = read_trace(JsonFile{small_trace().dump(), "t"});
  const json good = to_json(trace_profile(trace, toy_link()), trace.graph);
  const auto read = [&](const json& file) {
    return read_profile(JsonFile{file.dump(), "p"}, trace.graph);
  };
  expect_refusals(good, "p", kProfileTamperings, read);
  expect_refusals(good, "p", kLinkTamperings, read);
}

// Older files without rates of the far side get the machine's default.
TEST(ProfileFile, HasTheRatesOfTheFarSide) {
  const TaskGraph graph = chain(2, pages(1));
  Profile profile = flat_profile(graph, 100ns);
  profile.link.far_update = um::Bandwidth{12'345'678};
  profile.link.compute_speed_while_updating = 0.625;
  json file = to_json(profile, graph);
  const LinkProfile link = read_profile(JsonFile{file.dump(), "p"}, graph).link;
  EXPECT_EQ(link.far_update.bytes_per_second(), 12'345'678);
  EXPECT_EQ(link.compute_speed_while_updating, 0.625);
  file["link"].erase("far_update_bytes_per_second");
  file["link"].erase("compute_speed_while_updating");
  const LinkProfile older = read_profile(JsonFile{file.dump(), "p"}, graph).link;
  EXPECT_EQ(older.far_update.bytes_per_second(), LinkProfile{}.far_update.bytes_per_second());
  EXPECT_EQ(older.compute_speed_while_updating, LinkProfile{}.compute_speed_while_updating);
}

// The graph has the same tasks with other sizes, as with a larger batch.
TEST(BadProfile, IsRefusedForAnotherGraph) {
  const TaskGraph graph = chain(2, pages(1));
  const json file = to_json(flat_profile(graph, 100ns), graph);
  EXPECT_EQ(file["graph"], graph_stamp(fingerprint(graph)));
  const std::string sentence = refusal([&] {
    return read_profile(JsonFile{file.dump(), "p"}, chain(2, pages(2)));
  });
  EXPECT_TRUE(sentence.starts_with("p: graph belongs to another step or machine ("));
  EXPECT_NE(sentence.find("--batch"), std::string::npos);
}

// Defects of a plan file with moves for a chain of six layers.
constexpr std::array kPlanTamperings{
    Tampering{"/format", "", "missing"},
    Tampering{"/version", "", "missing"},
    Tampering{"/version", "2", "reads version 1"},
    Tampering{"/planner", "", "missing"},
    Tampering{"/graph", "", "missing"},
    Tampering{"/budget_bytes", "", "missing"},
    Tampering{"/budget_bytes", "\"much\"", "no whole number from 0 up"},
    Tampering{"/page_bytes", "", "missing"},
    Tampering{"/residency", "", "missing"},
    Tampering{"/residency", "\"sometimes\"", "neither 'planned' nor 'on-demand'"},
    Tampering{"/runs", "", "missing"},
    Tampering{"/runs/3/task", "\"f99\"", "'f99', which the network does not have"},
    Tampering{"/runs/0/algorithm", "\"magic\"", "'magic', which load does not have here"},
    Tampering{"/runs/1/after", "[1, 2]", "has not three elements"},
    Tampering{"/runs/1/after", "[1, 2, 4294967296]", "larger than 4294967295", "runs[1].after[2]"},
    Tampering{"/offloads", "", "missing"},
    Tampering{"/offloads/0/data", "\"z\"", "'z', which the network does not have"},
    Tampering{"/prefetches", "", "missing"},
    Tampering{"/prefetches", "{}", "no array"},
};

class BadPlan : public ::testing::Test {
 protected:
  BadPlan() {
    const Profile profile = flat_profile(graph, 100ns);
    file = to_json(planned("fractional", problem(graph, profile, pages(14))), graph);
  }
  [[nodiscard]] Plan read(const json& value) const {
    return read_plan(JsonFile{value.dump(), "p"}, graph);
  }
  TaskGraph graph = chain(6, pages(2));
  json file;
};

TEST_F(BadPlan, IsRefusedWithThePlaceOfWhatIsWrong) {
  expect_refusals(file, "p", kPlanTamperings, [&](const json& value) { return read(value); });
}

TEST_F(BadPlan, IsRefusedForAnotherGraph) {
  graph.tasks[0].flops += 1;  // costs do not change the fingerprint
  EXPECT_EQ(refusal([&] { return read(file); }), "accepted");
  graph.data[0].size = pages(3);
  const std::string sentence = refusal([&] { return read(file); });
  EXPECT_TRUE(sentence.starts_with("p: graph belongs to another step or machine (" +
                                   std::string{file["graph"]} + ", here " +
                                   graph_stamp(fingerprint(graph)) + ")"));
}

TEST_F(BadPlan, IsNotReadForAGraphWithTwoBlocksOfOneName) {
  graph.data[1].name = graph.data[0].name;
  file["graph"] = graph_stamp(fingerprint(graph));
  EXPECT_THROW(static_cast<void>(read(file)), um::ContractError);
}

}  // namespace
}  // namespace spillway::prefetch
