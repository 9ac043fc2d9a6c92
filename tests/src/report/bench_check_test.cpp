#include "src/report/bench_check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/report/sample_bench_file.h"
#include "um/error.h"

namespace spillway::test {
namespace {

using nlohmann::json;

void check(const json& content) {
  const prefetch::JsonFile file{content.dump(), "a.json"};
  check_bench(file.root());
}

// What it complains about when `content` is damaged.
std::string complaint_about(const json& content) {
  try {
    check(content);
  } catch (const um::Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(BenchCheck, TakesWhatTheBenchesWrite) {
  EXPECT_NO_THROW(check(bench_file("link", json::array({link_row()}))));
  EXPECT_NO_THROW(check(bench_file("paging", json::array({paging_row("faults", 2, 9)}))));
  EXPECT_NO_THROW(check(
      bench_file("train", json::array({training_row("joint", 40, 2), failed_row("copy", 40)}))));
  EXPECT_NO_THROW(check(bench_file("planners", json::array())));
}

TEST(BenchCheck, TakesMembersItDoesNotKnow) {
  json content = bench_file("link", json::array({link_row()}));
  content["more"] = 1;
  content["rows"][0]["more"] = "text";
  EXPECT_NO_THROW(check(content));
}

TEST(BenchCheck, NamesThePlaceOfWhatIsWrong) {
  json content = bench_file("train", json::array({training_row("joint", 40, 2)}));
  content["rows"][0]["seconds"]["median"] = "2 s";
  EXPECT_EQ(complaint_about(content), "a.json: rows[0].seconds.median is no number");
  content = bench_file("train", json::array({training_row("joint", 40, 2)}));
  content["rows"][0].erase("budget_bytes");
  EXPECT_EQ(complaint_about(content), "a.json: rows[0].budget_bytes is missing");
  content = bench_file("train", json::array({training_row("joint", 40, 2)}));
  content["rows"][0]["failed"] = "a budget too small";
  EXPECT_EQ(complaint_about(content), "a.json: rows[0].seconds stands beside 'failed'");
  content = bench_file("racing", json::array());
  EXPECT_EQ(complaint_about(content),
            "a.json: bench is 'racing', which this program does not know");
  content = bench_file("link", json::array());
  content["machine"].erase("id");
  EXPECT_EQ(complaint_about(content), "a.json: machine.id is missing");
  content = bench_file("link", json::array());
  content["options"] = 3;
  EXPECT_EQ(complaint_about(content), "a.json: options is no object");
}

// The page divides by these, and takes logarithms.
TEST(BenchCheck, RefusesFiguresThatCannotBe) {
  json content = bench_file("link", json::array({link_row()}));
  content["rows"][0]["seconds"]["median"] = 0;
  EXPECT_EQ(complaint_about(content), "a.json: rows[0].seconds.median is zero");
  content = bench_file("link", json::array({link_row()}));
  content["rows"][0]["seconds"]["least"] = 2e-6;
  EXPECT_EQ(complaint_about(content), "a.json: rows[0].seconds.least is more than the median");
  content = bench_file("link", json::array({link_row()}));
  content["rows"][0]["bytes"] = 0;
  EXPECT_EQ(complaint_about(content), "a.json: rows[0].bytes is zero");
  content = bench_file("train", json::array({training_row("joint", 40, 2)}));
  content["rows"][0]["resident_bytes"] = 0;
  EXPECT_EQ(complaint_about(content), "a.json: rows[0].resident_bytes is zero");
}

}  // namespace
}  // namespace spillway::test
