#include <gtest/gtest.h>

#include <array>

#include "prefetch/files/trace.h"
#include "tests/prefetch/small_trace.h"
#include "tests/prefetch/tampered.h"
#include "tests/refusal.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using test::refusal;

std::string complaint(const std::string& text) {
  return refusal([&] { return read_trace(JsonFile{text, "t"}); });
}

constexpr std::array kTamperings{
    Tampering{"/format", "\"spillway-plan\"", "t: format is 'spillway-plan', not 'spillway-trace'"},
    Tampering{"/version", "2", "t: version is 2; this program reads version 1"},
    Tampering{"/version", "", "t: version is missing"},
    Tampering{"/name", "", "t: name is missing"},
    Tampering{"/name", "\"a\\nb\"", "t: name holds a control character"},
    Tampering{"/data", "", "t: data is missing"},
    Tampering{"/data", "7", "t: data is no array"},
    Tampering{"/data/1", "[]", "t: data[1] is no object"},
    Tampering{"/data/1/id", "", "t: data[1].id is missing"},
    Tampering{"/data/1/id", "\"x\"", "t: data[1].id is no whole number from 0 up"},
    Tampering{"/data/1/id", "7", "t: data[1].id is 7, which an earlier block has"},
    Tampering{"/data/1/bytes", "-1", "t: data[1].bytes is no whole number from 0 up"},
    Tampering{"/data/1/bytes", "1.5", "t: data[1].bytes is no whole number from 0 up"},
    Tampering{"/data/1/bytes", "18446744073709551615",
              "t: data[1].bytes is larger than 4398046511104"},
    Tampering{"/data/1/kind", "\"bias\"", "t: data[1].kind is 'bias', none of weight, tensor"},
    Tampering{"/data/2/name", "null", "t: data[2].name is no string"},
    Tampering{"/data/0/offloadable", "1", "t: data[0].offloadable is neither true nor false"},
    Tampering{"/data/1/offloadable", "true",
              "t: data[1].offloadable is only for weights: tensors always are"},
    Tampering{"/tasks", "", "t: tasks is missing"},
    Tampering{"/tasks", "[]", "t: tasks is empty: a step has tasks"},
    Tampering{"/tasks/3", "null", "t: tasks[3] is no object"},
    Tampering{"/tasks/3/name", "", "t: tasks[3].name is missing"},
    Tampering{"/tasks/3/reads", "", "t: tasks[3].reads is missing"},
    Tampering{"/tasks/3/reads/1", "99", "t: tasks[3].reads[1] is 99, which is no id in data"},
    Tampering{"/tasks/3/reads/1", "-20", "t: tasks[3].reads[1] is no whole number from 0 up"},
    Tampering{"/tasks/3/writes", "21", "t: tasks[3].writes is no array"},
    Tampering{"/tasks/3/writes/0", "8", "t: tasks[3].writes[0] is 8, which is no id in data"},
    Tampering{"/tasks/3/duration_ns", "", "t: tasks[3].duration_ns is missing"},
    Tampering{"/tasks/3/duration_ns", "-1", "t: tasks[3].duration_ns is no whole number from 0 up"},
    Tampering{"/tasks/3/duration_ns", "1000000000000001",
              "t: tasks[3].duration_ns is larger than 1000000000000000"},
    Tampering{"/tasks/3/duration_ns", "1000000000000000",
              "t: tasks[3].duration_ns makes all times together more than 1000000000000000"},
    Tampering{"/tasks/3/workspace_bytes", "", "t: tasks[3].workspace_bytes is missing"},
    Tampering{"/tasks/3/workspace_bytes", "true",
              "t: tasks[3].workspace_bytes is no whole number from 0 up"},
    Tampering{"/tasks/3/phase", "\"loss\"",
              "t: tasks[3].phase is 'loss', none of forward, backward, update"},
    Tampering{"/tasks/3/kind", "\"conv\"",
              "t: tasks[3].kind is 'conv', none of other, convolution, linear, pool, activation, "
              "normalization, dropout, join"},
    Tampering{"/tasks/3/recomputable", "1", "t: tasks[3].recomputable is neither true nor false"},
    Tampering{"/tasks/4/algorithms", "[]", "t: tasks[4].algorithms is empty: leave it out"},
    Tampering{"/tasks/4/algorithms/1/name", "\"fast\"",
              "t: tasks[4].algorithms[1].name is 'fast', which an earlier algorithm has"},
    Tampering{"/tasks/4/algorithms/1/duration_ns", "",
              "t: tasks[4].algorithms[1].duration_ns is missing"},
};

TEST(BadTrace, IsRefusedWithThePlaceOfWhatIsWrong) {
  EXPECT_EQ(complaint(small_trace().dump()), "accepted");
  for (const Tampering& tampering : kTamperings) {
    EXPECT_EQ(complaint(tampered(small_trace(), tampering).dump()), tampering.sentence)
        << tampering.place << " = " << tampering.value;
  }
}

TEST(BadTrace, IsRefusedWhenItIsNoJson) {
  EXPECT_EQ(complaint(R"({"format": NaN})"), "t: not JSON, at byte 12");
  EXPECT_EQ(complaint(R"({"format": 1e999})"), "t: holds a number that is too large");
  const std::string text = small_trace().dump();
  EXPECT_EQ(complaint(text.substr(0, text.size() / 2)).substr(0, 20), "t: not JSON, at byte");
  EXPECT_EQ(complaint("[1]"), "t: is no object");
}

// 17 blocks of 4 TiB: the last one makes it more than 64.
TEST(BadTrace, IsRefusedWithMoreBytesThanAnyMemory) {
  nlohmann::json file = small_trace();
  file["data"] = nlohmann::json::array();
  for (int i = 0; i < 17; ++i) {
    file["data"].push_back({{"id", i}, {"bytes", 1ULL << 42U}, {"kind", "tensor"}});
  }
  EXPECT_EQ(complaint(file.dump()),
            "t: data[16].bytes makes all sizes together more than 70368744177664");
}

TEST(BadTrace, IsRefusedWithMoreOperandsThanAnyTask) {
  nlohmann::json file = small_trace();
  file["tasks"][0]["reads"] = std::vector<int>(4097, 10);
  EXPECT_EQ(complaint(file.dump()), "t: tasks[0].reads has 4097 elements, more than 4096");
}

}  // namespace
}  // namespace spillway::prefetch
