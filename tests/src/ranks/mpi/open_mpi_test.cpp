#include "src/ranks/mpi/open_mpi.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/ranks/mpi/no_launcher.h"

namespace spillway {
namespace {

/// An environment without a launcher's variables.
class StartedWithRanks : public ::testing::Test {
 protected:
  void SetUp() override { test::forget_launcher(); }
  void TearDown() override { test::forget_launcher(); }

  [[nodiscard]] static bool with(const std::string& name, const std::string& value) {
    test::forget_launcher();
    setenv(name.c_str(), value.c_str(), 1);
    return started_with_ranks();
  }
};

TEST_F(StartedWithRanks, KnowsLaunchersByTheirVariables) {
  EXPECT_FALSE(started_with_ranks());
  EXPECT_TRUE(with("OMPI_COMM_WORLD_SIZE", "4"));
  EXPECT_TRUE(with("PMI_SIZE", "2"));
  EXPECT_TRUE(with("PMIX_RANK", "0"));
  EXPECT_TRUE(with("SLURM_STEP_NUM_TASKS", "8"));
}

TEST_F(StartedWithRanks, IsFalseInABatchScriptOfSlurm) {
  EXPECT_FALSE(with("SLURM_NTASKS", "8"));
  EXPECT_FALSE(with("SLURM_STEP_NUM_TASKS", "1"));
  EXPECT_FALSE(with("SLURM_STEP_NUM_TASKS", "many"));
}

TEST_F(StartedWithRanks, KnowsTheFirstOfThem) {
  const auto is_first_with = [](const char* name, const char* value) {
    test::forget_launcher();
    setenv(name, value, 1);
    return is_started_first();
  };
  EXPECT_TRUE(is_started_first());
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    EXPECT_TRUE(is_first_with(name, "0"));
    EXPECT_FALSE(is_first_with(name, "3"));
  }
}

TEST_F(StartedWithRanks, KnowsWhatOtherLaunchersAnnounce) {
  const auto announced_by = [](const char* ranks, const char* number, const char* rank) {
    test::forget_launcher();
    setenv(ranks, number, 1);
    if (rank != nullptr) setenv(rank, "0", 1);
    EXPECT_FALSE(started_with_ranks());
    const auto announced = announced_ranks();
    return announced ? announced->variable + " " + std::to_string(announced->ranks) + ": " +
                           announced->start
                     : "";
  };
  EXPECT_FALSE(announced_ranks());
  struct Row {
    const char* ranks;
    const char* rank;
    std::string announced;
  };
  const std::vector<Row> rows{
      {"SLURM_NTASKS", "SLURM_PROCID", "SLURM_NTASKS 4: srun --mpi=pmix -n 4"},
      {"WORLD_SIZE", "RANK", "WORLD_SIZE 4: mpirun -n 4"},
      {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE 4: mpirun -n 4"},
      {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE 4: mpirun -n 4"},
      {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "FLUX_JOB_SIZE 4: mpirun -n 4"}};
  EXPECT_EQ(rows.size(), kAnnouncements.size()) << "each launcher has a row";
  for (const auto& [ranks, rank, announced] : rows) {
    EXPECT_EQ(announced_by(ranks, "4", rank), announced);
  }
  EXPECT_EQ(announced_by("WORLD_SIZE", "1", "RANK"), "");
  EXPECT_EQ(announced_by("WORLD_SIZE", "4", nullptr), "");
  EXPECT_EQ(announced_by("WORLD_SIZE", "all", "RANK"), "");
}

// The library is not beside the tests.
TEST(OpenMpi, SaysWhatToDoWithoutItsLibrary) {
  EXPECT_EQ(
      test::refusal([] { return open_mpi(); }),
      "this build has no MPI side (libspillway_mpi.so was not found); build it where Open MPI "
      "is, or start one process without mpirun");
}

}  // namespace
}  // namespace spillway
