// A process that may use one processor alone, as a rank that a launcher ties to one.

#include <gtest/gtest.h>
#include <sched.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

/// Ties this process, and what it starts, to the first processor that it may use.
class OneProcessor : public ::testing::Test {
 protected:
  OneProcessor() {
    CPU_ZERO(&before_);
    EXPECT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    std::size_t first = 0;
    while (first + 1 < CPU_SETSIZE && !CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneProcessor() override { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_;
};

// What a plan moves comes by hints, which another thread gives: else there would be page faults.
TEST_F(OneProcessor, HasAThreadForHints) {
  for (const char* const memory : {"managed", "copy"}) {
    const Outcome outcome = run_spillway(
        {"train --net lenet --batch 32 --steps 3 --eval-every 0 --budget min --json - --memory",
         memory});
    const nlohmann::json summary = summary_of(outcome);
    EXPECT_GT(summary.value("bytes_prefetched", 0), 0);
    EXPECT_EQ(summary.value("faults", -1), 0);
    EXPECT_EQ(outcome.errors.find("TBB"), std::string::npos) << outcome.errors;
  }
}

}  // namespace
}  // namespace spillway::test
