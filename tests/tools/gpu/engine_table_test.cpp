#include "tools/gpu/engine_table.h"

#include <gtest/gtest.h>

#include <atomic>

#include "src/profile/profiler.h"
#include "tests/src/small_training.h"

namespace spillway::gpu {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using um::Bytes;

// One convolution that two tasks of the step run, with three engines.
class EngineTable : public testing::Test {
 protected:
  EngineTable() {
    prefetch::Task task{.name = "a.forward"};
    task.algorithms = {{.name = "small", .workspace = Bytes{1}},
                       {.name = "quick", .workspace = Bytes{200}},
                       {.name = "large", .workspace = Bytes{300}}};
    convolutions.step.graph.tasks.push_back(task);
    const ConvolutionGeometry geometry{.x = {.batch = 2, .image = {3, 8, 10}},
                                       .y = {.batch = 2, .image = {4, 4, 5}},
                                       .kernel = {3, 1},
                                       .stride = {2, 2},
                                       .padding = {1, 0},
                                       .bias = true};
    convolutions.step.launches.push_back(
        {.operation = ConvolutionForward{.geometry = geometry, .relu = true}, .operands = {}});
    convolutions.tasks = {{"a.forward", "b.forward"}};
    times.durations = {{milliseconds{4}, milliseconds{1}, milliseconds{2}}};
  }

  DistinctConvolutions convolutions;
  prefetch::Profile times;
};

TEST_F(EngineTable, HasEachEngineWithItsWorkspaceAndTime) {
  const json row = engine_table(convolutions, times).at("convolutions").at(0);
  EXPECT_EQ(row.at("engines"),
            json::parse(R"([{"name": "small", "workspace_bytes": 1, "seconds": 0.004},
                            {"name": "quick", "workspace_bytes": 200, "seconds": 0.001},
                            {"name": "large", "workspace_bytes": 300, "seconds": 0.002}])"));
  EXPECT_EQ(row.at("fastest"), "quick");
  EXPECT_EQ(row.at("tasks"), json::parse(R"(["a.forward", "b.forward"])"));
}

TEST_F(EngineTable, DescribesTheConvolution) {
  const json row = engine_table(convolutions, times).at("convolutions").at(0);
  EXPECT_EQ(row.at("pass"), "forward");
  EXPECT_EQ(row.at("x"), "3x8x10");
  EXPECT_EQ(row.at("y"), "4x4x5");
  EXPECT_EQ(row.at("kernel"), "3x1");
  EXPECT_EQ(row.at("stride"), "2x2");
  EXPECT_EQ(row.at("relu"), true);
  EXPECT_EQ(row.at("transposed"), false);
}

TEST_F(EngineTable, SumsOverAllTasksOfTheStep) {
  const json table = engine_table(convolutions, times);
  EXPECT_DOUBLE_EQ(table.at("seconds_by_fastest"), 0.002);          // two of 1 ms
  EXPECT_DOUBLE_EQ(table.at("seconds_by_least_workspace"), 0.008);  // two of 4 ms
}

TEST(EngineTimes, AreMeasuredOfConvolutionsAlone) {
  const ExecutionContext context = test::small_context();
  const DistinctConvolutions convolutions = distinct_convolutions(
      make_training_step(test::small_network(), *context.backend, {.batch = 2}));
  const std::atomic<bool> stop = false;
  const prefetch::Profile times =
      measure_tasks(convolutions.step, *context.backend, context.device->memory(), Bytes{1U << 24U},
                    *context.compute, stop, [](double) {});
  const json table = engine_table(convolutions, times);
  ASSERT_EQ(table.at("convolutions").size(), 2U);  // forward, and the gradient of the weights
  EXPECT_GT(table.at("seconds_by_fastest"), 0);
}

}  // namespace
}  // namespace spillway::gpu
