// `spillway bench` as a program: its files and its errors. Measured times are not checked.

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

constexpr int kInterrupted = 130;

void expect_timing(const json& timing) {
  EXPECT_GT(timing.at("median"), 0);
  EXPECT_LE(timing.at("min"), timing.at("median"));
  EXPECT_GE(timing.at("max"), timing.at("median"));
  EXPECT_GE(timing.at("deviation"), 0);
  EXPECT_GE(timing.at("runs"), 1);
  EXPECT_TRUE(timing.at("settled").is_boolean());
}

void expect_bench_file(const json& file, const std::string& bench) {
  EXPECT_EQ(file.at("format"), "spillway-bench");
  EXPECT_EQ(file.at("version"), 2);
  EXPECT_EQ(file.at("bench"), bench);
  EXPECT_EQ(file.at("date").get<std::string>().size(), std::string{"2026-11-22T11:00:00Z"}.size());
  EXPECT_GT(file.at("seconds"), 0);
  EXPECT_TRUE(file.at("build").at("version").is_string());
  EXPECT_EQ(file.at("machine").at("id").get<std::string>().size(), 12U);
  EXPECT_EQ(file.at("machine").at("device"), "host");
  EXPECT_GT(file.at("machine").at("memory_bytes"), 0);
  EXPECT_TRUE(file.at("options").is_object());
  EXPECT_TRUE(file.at("rows").is_array());
}

json bench_json(const Arguments& arguments) { return json_of({arguments, "--quick --json -"}); }

TEST(BenchLinkProgram, MeasuresEachWayAndDirection) {
  const TemporaryFolder folder;
  const json file = bench_json(
      {"bench link --device host --far", "file:" + folder.path().string(), "--sizes 4KiB,1MiB"});

  expect_bench_file(file, "link");
  EXPECT_EQ(file.at("rows").size(), 30U);  // 5 ways, 2 sizes, 3 directions
  for (const json& row : file.at("rows")) {
    expect_timing(row.at("seconds"));
    expect_timing(row.at("call_seconds"));
    EXPECT_GT(row.at("bytes_per_second"), 0);
    EXPECT_TRUE(row.at("bytes") == 4096 || row.at("bytes") == 1048576) << row;
  }
  const json& alone = file.at("launches").at(0);
  EXPECT_TRUE(alone.at("beside").is_null());
  expect_timing(alone.at("call_seconds"));
  expect_timing(alone.at("seconds"));
}

TEST(BenchLinkProgram, KeepsItsFlagsInTheFile) {
  const json options = bench_json(
                           "bench link --device host --ways pinned_copy --sizes 64KiB "
                           "--link-bandwidth 2GB/s --seconds 0.5")
                           .at("options");

  EXPECT_EQ(options.at("link-bandwidth"), "2GB/s");
  EXPECT_EQ(options.at("seconds"), 0.5);
  EXPECT_EQ(options.at("deviation"), 0.03);
  EXPECT_EQ(options.at("quick"), true);
  EXPECT_EQ(options.at("managed-limit"), nullptr);
  EXPECT_EQ(options.at("ways"), "pinned_copy");
  EXPECT_FALSE(options.contains("json"));
  EXPECT_FALSE(options.contains("help"));
}

// 1 MiB at 100 MB/s takes at least 10.5 ms on any machine.
TEST(BenchLinkProgram, MeasuresTheLinkThatWasAskedFor) {
  for (const char* way : {"prefetch", "pinned_copy"}) {
    const json file = bench_json(
        {"bench link --device host --ways", way, "--sizes 1MiB --link-bandwidth 100MB/s"});
    for (const json& row : file.at("rows")) {
      EXPECT_GE(row.at("seconds").at("min"), 0.0104) << row;
    }
  }
}

TEST(BenchPagingProgram, MeasuresEachPatternAndWay) {
  const json file = bench_json("bench paging");

  expect_bench_file(file, "paging");
  EXPECT_TRUE(file.at("machine").at("paging").is_string());
  EXPECT_EQ(file.at("options").at("near"), "1MiB");  // the value of --quick
  EXPECT_EQ(file.at("options").at("page"), "64KiB");
  EXPECT_EQ(file.at("options").at("times").size(), 2U);
  EXPECT_EQ(file.at("rows").size(), 32U);  // 4 patterns, 2 sizes, 4 ways
  for (const json& row : file.at("rows")) {
    expect_timing(row.at("seconds"));
    expect_timing(row.at("plain_seconds"));
    EXPECT_GT(row.at("ratio"), 0);
    EXPECT_TRUE(row.at("faults").is_number_unsigned());
  }
}

TEST(BenchPagingProgram, PagesInBothMechanisms) {
  const json file = bench_json("bench paging --paging memfd --patterns stream");

  EXPECT_EQ(file.at("machine").at("paging"), "memfd");
  EXPECT_EQ(file.at("rows").size(), 8U);
}

TEST(BenchProgram, ShowsATableOnStandardOutput) {
  const Outcome link = succeed("bench link --device host --quick --sizes 4KiB");
  expect_parts(link.output, {"pinned_copy", "launch", "alone", "give --far file:PATH"});

  const Outcome paging = succeed("bench paging --quick --patterns random");
  expect_parts(paging.output, {"discarded"});
}

TEST(BenchProgram, RefusesToReplaceWhatAnotherMachineMeasured) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "bench.json";
  const Arguments again = {"bench paging --quick --ways faults --patterns stream --json", path};
  succeed(again);
  succeed(again);

  expect_refused(kFailure, {"bench link --quick --json", path}, {path, "bench paging"});
  json file = json::parse(std::ifstream{path});
  file["machine"]["id"] = "000000000000";
  std::ofstream{path} << file;
  expect_refused(kFailure, again, {path, "another machine"});
}

TEST(BenchProgram, WritesOnlyWhatItReachedWhenItIsInterrupted) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "bench.json";
  Program program{
      {"bench paging --near 1MiB --page 64KiB --deviation 0 --repeats 1000000 --seconds 0.2 --json",
       path}};
  program.wait_for_error("bench paging");  // wait until it has begun
  program.signal(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_EQ(outcome.exit_code, kInterrupted) << outcome.errors;
  expect_parts(outcome.errors, {"not reached are left out"});
  const json file = json::parse(std::ifstream{path});
  EXPECT_LT(file.at("rows").size(), 80U);
}

// Stops at the second of three rows; each row takes a second.
TEST(BenchProgram, KeepsWhatItMeasuredBeforeItWasInterrupted) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "bench.json";
  Program program{{"bench paging --near 1MiB --page 64KiB --times 2 --ways faults --patterns "
                   "stream,reverse,random --deviation 0 --repeats 1000000 --seconds 1 --json",
                   path},
                  {},
                  Program::Errors::kTerminal};
  program.wait_for_error("reverse faults");
  program.signal(SIGINT);

  EXPECT_EQ(program.finish().exit_code, kInterrupted);
  const json rows = json::parse(std::ifstream{path}).at("rows");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("pattern"), "stream");
  expect_timing(rows[0].at("seconds"));
}

}  // namespace
}  // namespace spillway::test
