// Benches that fail in the middle, because the far memory of a later row does not fit.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

constexpr rlim_t kLargestFile = 1 << 20;

/// While it exists, programs started by this one cannot make files larger than `size`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t size) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    if (getrlimit(RLIMIT_FSIZE, &before_) != 0) ADD_FAILURE() << "no limit to come back to";
    const rlimit limit{.rlim_cur = size, .rlim_max = before_.rlim_max};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) ADD_FAILURE() << "files cannot be limited";
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

class FailingBench : public testing::Test {
 protected:
  [[nodiscard]] Outcome run(const Arguments& arguments) const {
    const FileSizeLimit limit{kLargestFile};
    return run_spillway(
        {arguments, "--quick --far", "file:" + folder_.path().string(), "--json", path_});
  }
  [[nodiscard]] json rows() const { return json::parse(std::ifstream{path_}).at("rows"); }
  static void expect_one_sentence(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, kFailure) << outcome.errors;
    const std::string begin = "spillway: cannot put 2.00 MiB of far memory in ";
    const std::size_t at = outcome.errors.rfind("spillway: ");
    ASSERT_NE(at, std::string::npos) << outcome.errors;
    const std::string sentence = outcome.errors.substr(at);
    EXPECT_TRUE(sentence.starts_with(begin)) << sentence;
    EXPECT_EQ(sentence.find('\n'), sentence.size() - 1) << sentence;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("bench.json");
};

// The file has one half per direction: 8 KiB for the first size, 2 MiB for the second.
TEST_F(FailingBench, OfTheLinkKeepsTheSizeBefore) {
  const Outcome outcome = run("bench link --device host --ways file --sizes 4KiB,1MiB");

  expect_one_sentence(outcome);
  expect_parts(outcome.output, {"4.00 KiB"});
  const json kept = rows();
  ASSERT_EQ(kept.size(), 3U);  // directions
  for (const json& row : kept) EXPECT_EQ(row.at("bytes"), 4096) << row;
}

// Near memory is 1 MiB; far memory is half of that, then twice.
TEST_F(FailingBench, OfPagingKeepsTheSizeBefore) {
  const Outcome outcome = run("bench paging --ways faults --patterns stream,random");

  expect_one_sentence(outcome);
  expect_parts(outcome.output, {"0.5x"});
  const json kept = rows();
  ASSERT_EQ(kept.size(), 2U);  // patterns
  for (const json& row : kept) EXPECT_EQ(row.at("near_times"), 0.5) << row;
}

TEST_F(FailingBench, BeforeItsFirstRowLeavesTheFileThatIsThere) {
  std::ofstream{path_} << "old";
  const Outcome outcome = run("bench link --device host --ways file --sizes 1MiB");

  expect_one_sentence(outcome);
  expect_parts(outcome.errors, {"nothing was measured"});
  std::string left;
  std::ifstream{path_} >> left;
  EXPECT_EQ(left, "old");
}

}  // namespace
}  // namespace spillway::test
