#include <gtest/gtest.h>

#include <array>

#include "prefetch/files/profile_file.h"
#include "prefetch/files/trace.h"
#include "tests/prefetch/small_trace.h"
#include "tests/prefetch/tampered.h"
#include "tests/prefetch/toy.h"
#include "tests/refusal.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using test::refusal;

constexpr std::array kTamperings{
    Tampering{"/format", "null", "p: format is no string"},
    Tampering{"/format", "\"spillway-trace\"",
              "p: format is 'spillway-trace', not 'spillway-profile'"},
    Tampering{"/version", "", "p: version is missing"},
    Tampering{"/version", "3", "p: version is 3; this program reads version 1"},
    Tampering{"/source", "", "p: source is missing"},
    Tampering{"/source", "[]", "p: source is no string"},
    Tampering{"/source", "\"\\u0007\"", "p: source holds a control character"},
    Tampering{"/graph", "", "p: graph is missing"},
    Tampering{"/graph", "1234", "p: graph is no string"},
    Tampering{"/link", "", "p: link is missing"},
    Tampering{"/link", "\"fast\"", "p: link is no object"},
    Tampering{"/link/offload_bytes_per_second", "null",
              "p: link.offload_bytes_per_second is no number"},
    Tampering{"/link/prefetch_bytes_per_second", "-1",
              "p: link.prefetch_bytes_per_second is negative or too large"},
    Tampering{"/link/latency_ns", "", "p: link.latency_ns is missing"},
    Tampering{"/link/duplex", "\"yes\"", "p: link.duplex is neither true nor false"},
    Tampering{"/link/compute_speed_while_moving", "1.01",
              "p: link.compute_speed_while_moving is larger than 1"},
    Tampering{"/link/fault_ns", "1000000000000001",
              "p: link.fault_ns is larger than 1000000000000000"},
    Tampering{"/link/faults_spare_overwritten", "1",
              "p: link.faults_spare_overwritten is neither true nor false"},
    Tampering{"/link/faults_evict_by_use", "\"no\"",
              "p: link.faults_evict_by_use is neither true nor false"},
    Tampering{"/tasks", "", "p: tasks is missing"},
    Tampering{"/tasks", "{}", "p: tasks is no array"},
    Tampering{"/tasks/5", "", "p: tasks are 5, but the network here has 6"},
    Tampering{"/tasks/2", "3", "p: tasks[2] is no object"},
    Tampering{"/tasks/2/task", "", "p: tasks[2].task is missing"},
    Tampering{"/tasks/2/task", "\"Update\"", "p: tasks[2].task is 'Update', not Loss"},
    Tampering{"/tasks/2/duration_ns", "", "p: tasks[2].duration_ns is missing"},
    Tampering{"/tasks/2/duration_ns", "300", "p: tasks[2].duration_ns is no object"},
    Tampering{"/tasks/4/duration_ns/fast", "", "p: tasks[4].duration_ns.fast is missing"},
    Tampering{"/tasks/4/duration_ns/fast", "\"1s\"",
              "p: tasks[4].duration_ns.fast is no whole number from 0 up"},
};

TEST(BadProfile, IsRefusedWithThePlaceOfWhatIsWrong) {
  const Trace trace = read_trace(JsonFile{small_trace().dump(), "t"});
  const nlohmann::json file = to_json(trace_profile(trace, toy_link()), trace.graph);
  const auto complaint = [&](const nlohmann::json& text) {
    return refusal([&] { return read_profile(JsonFile{text.dump(), "p"}, trace.graph); });
  };
  EXPECT_EQ(complaint(file), "accepted");
  for (const Tampering& tampering : kTamperings) {
    EXPECT_EQ(complaint(tampered(file, tampering)), tampering.sentence)
        << tampering.place << " = " << tampering.value;
  }
}

}  // namespace
}  // namespace spillway::prefetch
