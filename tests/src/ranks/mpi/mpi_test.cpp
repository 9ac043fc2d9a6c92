#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using namespace std::chrono_literals;

// Allows root, and puts another build's plug-in on the system's library path; the right one is
// beside the program.
const std::string kEnvironment =
    "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
    "LD_LIBRARY_PATH=" SPILLWAY_FOREIGN_FOLDER " ";

struct Outcome {
  int exit_code;
  std::string output;
  std::string errors;
  std::chrono::steady_clock::duration took;
};

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Starts several ranks of rank_program with mpirun.
class Mpi : public ::testing::Test {
 protected:
  /// Runs `command` in a shell; kills it after a minute.
  [[nodiscard]] Outcome run(const std::string& command) const {
    const std::string output = folder_.file("output");
    const std::string errors = folder_.file("errors");
    const auto start = std::chrono::steady_clock::now();
    const int status =  // NOLINTNEXTLINE(cert-env33-c): a shell is wanted
        std::system(("timeout 60 " + command + " </dev/null >" + output + " 2>" + errors).c_str());
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .output = text_of(output),
            .errors = text_of(errors),
            .took = std::chrono::steady_clock::now() - start};
  }

  [[nodiscard]] Outcome run_ranks(std::size_t ranks, const std::string& arguments) const {
    return run(kEnvironment + SPILLWAY_MPIRUN " --oversubscribe --bind-to none -n " +
               std::to_string(ranks) + " " SPILLWAY_RANK_PROGRAM " " + arguments);
  }

  /// Does the same on two nodes with a link of this kind; see two_nodes.
  [[nodiscard]] Outcome run_nodes(const std::string& link, const std::string& arguments) const {
    return run(kEnvironment + SPILLWAY_TWO_NODES " " + link +
               " " SPILLWAY_MPIRUN " " SPILLWAY_RANK_PROGRAM " " + arguments);
  }
  static constexpr int kNoNodes = 77;  // exit code of two_nodes if it cannot make nodes

 private:
  test::TemporaryFolder folder_;
};

constexpr const char* kContract =
    "broadcasts\nexchanges_uneven_pieces\nsums\ngathers_texts\nbroadcasts_texts\n"
    "fails_on_rank_zero\ntells_places\nagrees\ndisagrees\n"
    "reduces_by_the_tree\nreduces_many_numbers\n";

void expect_success(const Outcome& outcome, const std::string& output) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, output);  // the launcher may print warnings among the errors
}

// Expects an error within 25 s, longer than the time limit even on a busy machine.
void expect_failure(const Outcome& outcome, const std::string& sentence) {
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.errors.find(sentence), std::string::npos) << outcome.errors;
  EXPECT_LT(outcome.took, 25s);
}

TEST_F(Mpi, KeepsWhatACommunicatorPromises) {
  for (const std::size_t ranks : {1, 2, 3, 4}) {
    expect_success(run_ranks(ranks, "contract 60000"), kContract);
  }
}

TEST_F(Mpi, MayBeCalledByAnotherThread) {
  expect_success(run_ranks(2, "contract_in_a_thread 60000"), kContract);
}

TEST_F(Mpi, GivesTheSameBitsForAnyNumberOfRanks) {
  const Outcome one = run_ranks(1, "digest 60000 11");
  ASSERT_EQ(one.output.size(), 65U) << one.errors;
  for (const std::size_t ranks : {2, 3, 4}) {
    expect_success(run_ranks(ranks, "digest 60000 11"), one.output);
  }
}

// Two MPI messages and part of a third.
TEST_F(Mpi, SendsMoreThanFitsInAMessage) {
  expect_success(run_ranks(2, "large_message 60000 134217731"), "received\n");
}

// Fails at once, not at the time limit, whichever size is larger.
TEST_F(Mpi, RefusesAMessageOfAnotherSize) {
  for (const char* const sizes : {"0", "1", "2", "3", "4", "5"}) {
    SCOPED_TRACE(sizes);
    expect_failure(run_ranks(2, std::string{"disagree 600000 "} + sizes),
                   "a message of the size that its receiver expects");
  }
}

TEST_F(Mpi, RefusesMessagesOfTwoCallsForThoseOfOne) {
  expect_failure(run_ranks(2, "disagree_on_calls 600000 0"),
                 "a message of the size that its receiver expects");
}

TEST_F(Mpi, KeepsTheRoundsOfLateRanksApart) {
  expect_success(run_ranks(3, "rounds 60000 200"), "met\n");
}

TEST_F(Mpi, LeavesTheSignalsOfPageFaultsAlone) {
  expect_success(run_ranks(2, "fault_handlers 60000"), "as they were\n");
}

TEST_F(Mpi, NamesARankThatHangs) {
  expect_failure(run_ranks(3, "hang 1000 1"), "nothing has come from rank 1 on ");
  expect_failure(run_ranks(3, "hang_before_sum 1000 2"), "nothing has come from rank 2 on ");
}

// The launcher notices before the time limit of ten minutes.
TEST_F(Mpi, EndsAllRanksWhereOneIsKilled) {
  expect_failure(run_ranks(3, "die 600000 1"), "process rank 1 ");
}

TEST_F(Mpi, EndsAllRanksWhereOneEndsByAnException) {
  expect_failure(run_ranks(3, "throw_alone 600000 2"), "not told to the others");
}

TEST_F(Mpi, EndsAllRanksWithTheSentenceOfOne) {
  const Outcome outcome = run_ranks(3, "give_up 600000 2");
  expect_failure(outcome, "spillway: rank 2 on ");
  EXPECT_NE(outcome.errors.find(" ended: the disk is full\n"), std::string::npos) << outcome.errors;
}

TEST_F(Mpi, EndsWhileAnotherThreadWaits) {
  const Outcome outcome = run_ranks(2, "give_up_beside 600000 1");
  expect_failure(outcome, " ended: the disk is full\n");
}

TEST_F(Mpi, KeepsWhatACommunicatorPromisesBetweenTwoNodes) {
  const Outcome outcome = run_nodes("good", "contract 60000");
  if (outcome.exit_code == kNoNodes) GTEST_SKIP() << "no network namespaces here";
  expect_success(outcome, kContract);
}

// Frames that arrive late, out of order or never.
TEST_F(Mpi, GivesTheSameBitsOverABadLink) {
  const Outcome outcome = run_nodes("late=2", "digest 60000 11");
  if (outcome.exit_code == kNoNodes) GTEST_SKIP() << "no network namespaces here, or no python3";
  expect_success(outcome, run_ranks(1, "digest 60000 11").output);
}

TEST_F(Mpi, KeepsWhatACommunicatorPromisesOverABadLink) {
  const Outcome outcome = run_nodes("late=2", "contract 60000");
  if (outcome.exit_code == kNoNodes) GTEST_SKIP() << "no network namespaces here, or no python3";
  expect_success(outcome, kContract);
}

TEST_F(Mpi, NamesANodeThatIsCutOff) {
  const Outcome outcome = run_nodes("cut=3", "rounds 2000 100000000");
  if (outcome.exit_code == kNoNodes) GTEST_SKIP() << "no network namespaces here";
  expect_failure(outcome, "on node-a ended: nothing has come from rank");
  EXPECT_NE(outcome.errors.find(" on node-b for 2 s: "), std::string::npos) << outcome.errors;
}

TEST_F(Mpi, RunsAloneWithoutALauncher) {
  const Outcome outcome = run(kEnvironment + SPILLWAY_RANK_PROGRAM " contract 60000");
  expect_success(outcome, std::string{"started alone\n"} + kContract);
}

TEST_F(Mpi, SaysWhatToDoWhereTheLauncherIsOfAnotherMpi) {
  const Outcome outcome =
      run(kEnvironment + "SLURM_STEP_NUM_TASKS=4 " SPILLWAY_RANK_PROGRAM " contract 60000");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("the launcher started 4 processes, but MPI sees this one alone"),
            std::string::npos)
      << outcome.errors;
}

TEST_F(Mpi, IsRefusedWhereItIsOfAnotherBuild) {
  const Outcome outcome = run(SPILLWAY_FOREIGN_FOLDER "/rank_program contract 60000");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors,
            "rank_program: " SPILLWAY_FOREIGN_FOLDER
            "/libspillway_mpi.so is of another build of spillway; install both from the same, or "
            "start one process without mpirun\n");
}

}  // namespace
}  // namespace spillway
