// Files of traces, each spoilt in one place: the refusal names the place and the cause.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/trace.h"
#include "tests/prefetch/small_trace.h"
#include "tests/prefetch/tampered.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using nlohmann::json;
using test::refusal;

constexpr std::array kTraceTamperings{
    Tampering{"/format", "\"spillway-plan\"", "'spillway-plan', not 'spillway-trace'"},
    Tampering{"/version", "2", "reads version 1"},
    Tampering{"/version", "", "missing"},
    Tampering{"/name", "", "missing"},
    Tampering{"/name", "\"a\\nb\"", "control character"},
    Tampering{"/data", "", "missing"},
    Tampering{"/data", "7", "no array"},
    Tampering{"/data/1", "[]", "no object"},
    Tampering{"/data/1/id", "", "missing"},
    Tampering{"/data/1/id", "\"x\"", "no whole number from 0 up"},
    Tampering{"/data/1/id", "7", "7, which an earlier block has"},
    Tampering{"/data/1/bytes", "-1", "no whole number from 0 up"},
    Tampering{"/data/1/bytes", "1.5", "no whole number from 0 up"},
    Tampering{"/data/1/bytes", "18446744073709551615", "larger than 4398046511104"},
    Tampering{"/data/1/kind", "\"bias\"", "'bias', none of weight, tensor"},
    Tampering{"/data/2/name", "null", "no string"},
    Tampering{"/data/0/offloadable", "1", "neither true nor false"},
    Tampering{"/data/1/offloadable", "true", "only for weights"},
    Tampering{"/tasks", "", "missing"},
    Tampering{"/tasks", "[]", "empty"},
    Tampering{"/tasks/3", "null", "no object"},
    Tampering{"/tasks/3/name", "", "missing"},
    Tampering{"/tasks/3/reads", "", "missing"},
    Tampering{"/tasks/3/reads/1", "99", "99, which is no id in data"},
    Tampering{"/tasks/3/reads/1", "-20", "no whole number from 0 up"},
    Tampering{"/tasks/3/writes", "21", "no array"},
    Tampering{"/tasks/3/writes/0", "8", "8, which is no id in data"},
    Tampering{"/tasks/3/duration_ns", "", "missing"},
    Tampering{"/tasks/3/duration_ns", "-1", "no whole number from 0 up"},
    Tampering{"/tasks/3/duration_ns", "1000000000000001", "larger than 1000000000000000"},
    Tampering{"/tasks/3/duration_ns", "1000000000000000", "all times together"},
    Tampering{"/tasks/3/workspace_bytes", "", "missing"},
    Tampering{"/tasks/3/workspace_bytes", "true", "no whole number from 0 up"},
    Tampering{"/tasks/3/phase", "\"loss\"", "'loss', none of forward, backward, update"},
    Tampering{"/tasks/3/kind", "\"conv\"", "'conv', none of other, convolution, linear"},
    Tampering{"/tasks/3/recomputable", "1", "neither true nor false"},
    Tampering{"/tasks/4/algorithms", "[]", "empty"},
    Tampering{"/tasks/4/algorithms/1/name", "\"fast\"", "which an earlier algorithm has"},
    Tampering{"/tasks/4/algorithms/1/duration_ns", "", "missing"},
    Tampering{"/title", "1", "unknown; there are format, version, name, tasks, data"},
    Tampering{"/data/1/byte", "1", "unknown; did you mean 'bytes'?"},
    Tampering{"/tasks/3/recomputeable", "true", "did you mean 'recomputable'?"},
    Tampering{"/tasks/4/algorithms/1/work_space_bytes", "1", "did you mean 'workspace_bytes'?"},
};

Trace read_text(const std::string& text) { return read_trace(JsonFile{text, "t"}); }

TEST(BadTrace, IsRefusedWithThePlaceOfWhatIsWrong) {
  expect_refusals(small_trace(), "t", kTraceTamperings,
                  [](const json& file) { return read_text(file.dump()); });
}

TEST(BadTrace, IsRefusedWhenItIsNoJson) {
  const auto complaint = [](const std::string& text) {
    return refusal([&] { return read_text(text); });
  };
  EXPECT_EQ(complaint(R"({"format": NaN})"), "t: not JSON, at byte 12");
  const std::string text = small_trace().dump();
  EXPECT_TRUE(complaint(text.substr(0, text.size() / 2)).starts_with("t: not JSON, at byte"));
  EXPECT_EQ(complaint("[1]"), "t: is no object");
}

// 17 blocks of 4 TiB: the last one makes it more than 64.
TEST(BadTrace, IsRefusedWithMoreBytesThanAnyMemory) {
  json file = small_trace();
  file["data"] = json::array();
  for (int i = 0; i < 17; ++i) {
    file["data"].push_back({{"id", i}, {"bytes", 1ULL << 42U}, {"kind", "tensor"}});
  }
  EXPECT_EQ(refusal([&] { return read_text(file.dump()); }),
            "t: data[16].bytes makes all sizes together more than 70368744177664");
}

TEST(BadTrace, IsRefusedWithMoreOperandsThanAnyTask) {
  json file = small_trace();
  file["tasks"][0]["reads"] = std::vector<int>(4097, 10);
  EXPECT_EQ(refusal([&] { return read_text(file.dump()); }),
            "t: tasks[0].reads has 4097 elements, more than 4096");
}

}  // namespace
}  // namespace spillway::prefetch
