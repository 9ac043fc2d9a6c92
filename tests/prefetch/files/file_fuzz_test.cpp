// Files may contain anything. Each property corrupts a good file in a few places; the result is
// read, then planned, verified and simulated, or refused in one line.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "prefetch/files/machine.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/files/trace.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_files.h"
#include "tests/temporary_folder.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using nlohmann::json;

// Collects every value in `value` except the root.
void collect(json& value, std::vector<json*>& all) {
  if (!value.is_structured()) return;
  for (json& child : value) {
    all.push_back(&child);
    collect(child, all);
  }
}

json strange_value() {
  return *rc::gen::element<json>(
      nullptr, true, 0, -1, 1, 3, 1.5, 1e300, -1e300, 1e-300, UINT64_MAX, INT64_MIN, 1ULL << 42U,
      1ULL << 62U, 1'000'000'000'000'000, "", "x", "forward", "tensor", "weight", "a\nb", "\x7f",
      std::string(5000, 'y'), json::array(), json::object(), json::array({7, 7, 10, 12}));
}

void drop_a_child(json& value) {
  if (value.empty()) return;
  const auto at = *rc::gen::inRange<std::size_t>(0, value.size());
  if (value.is_array()) {
    value.erase(at);
  } else if (value.is_object()) {
    value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(at)).key());
  }
}

void spoil(json& file) {
  std::vector<json*> all;
  collect(file, all);
  json& value = *all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const json& other = *all[*rc::gen::inRange<std::size_t>(0, all.size())];
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      value = strange_value();
      break;
    case 1:
      value = json(other);
      break;
    case 2:
      drop_a_child(value);
      break;
    default:
      if (value.is_array()) {
        value.push_back(json(other));
      } else if (value.is_number_integer() && value < 1'000'000'000) {
        value = *rc::gen::element(-value.get<std::int64_t>(), value.get<std::int64_t>() + 1);
      }
  }
}

// Returns the text of `file`, corrupted as JSON and sometimes as text.
std::string spoilt(json file) {
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) spoil(file);
  std::string text = file.dump(-1, ' ', false, json::error_handler_t::replace);
  if (*rc::gen::inRange(0, 8) == 0) text.resize(*rc::gen::inRange<std::size_t>(0, text.size()));
  for (int i = *rc::gen::element(0, 0, 0, 0, 1, 3); i > 0 && !text.empty(); --i) {
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  }
  return text;
}

// The read must succeed, or refuse in one line.
void expect_read_or_refused(const std::function<void()>& read) {
  try {
    read();
    RC_TAG("read");
  } catch (const um::Error& error) {
    RC_TAG("refused");
    const std::string sentence = error.what();
    RC_ASSERT(!sentence.empty());
    RC_ASSERT(std::ranges::none_of(sentence, [](char c) { return c >= 0 && c < ' '; }));
  }
}

void expect_plans(const TaskGraph& graph, const Profile& profile, um::Bytes budget) {
  const um::Bytes page = choose_page(graph);
  um::Bytes all;
  for (const DataBlock& block : graph.data) all += block.size;
  const NearNeed need = near_need(graph, BlockSizes{graph, page});
  RC_ASSERT(need.smallest <= need.resident);
  const Problem given{
      .graph = graph,
      .profile = profile,
      .budget = std::max(budget, need.smallest),
      .page = page,
      .chunk = std::max(chunk_for(profile.link), um::round_up(um::Bytes{all.count() / 1024}, page)),
      .may_recompute = true};
  for (const char* name : {"capacity", "on-demand"}) {
    const Plan plan = planned(name, given);
    RC_ASSERT(reason_against(graph, plan) == "");
    if (all < um::Bytes{1ULL << 40U}) {  // the paging model visits each page
      RC_ASSERT(simulate(graph, plan, profile).makespan() >= um::Nanoseconds{0});
    }
  }
}

RC_GTEST_PROP(SpoiltTrace, IsPlannedOrRefusedInOneLine, ()) {
  const std::string text = spoilt(small_trace());
  expect_read_or_refused([&] {
    const Trace trace = read_trace(JsonFile{text, "t"});
    expect_plans(trace.graph, trace_profile(trace, find_machine("a100").link),
                 um::Bytes{24ULL << 20U});
  });
}

RC_GTEST_PROP(SpoiltProfile, IsPlannedWithOrRefusedInOneLine, ()) {
  const Trace trace = read_trace(JsonFile{small_trace().dump(), "t"});
  const std::string text = spoilt(to_json(trace_profile(trace, toy_link()), trace.graph));
  expect_read_or_refused([&] {
    const Profile profile = read_profile(JsonFile{text, "p"}, trace.graph);
    expect_plans(trace.graph, profile, um::Bytes{24ULL << 20U});
  });
}

RC_GTEST_PROP(SpoiltMachine, IsPlannedForOrRefusedInOneLine, ()) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("machine.json");
  std::ofstream{path} << spoilt(small_machine());
  const Trace trace = read_trace(JsonFile{small_trace().dump(), "t"});
  expect_read_or_refused([&] {
    const Machine machine = find_machine(path);
    const um::Bytes max{64ULL << 20U};
    expect_plans(trace.graph, model_profile(trace.graph, machine),
                 std::min(machine.near_memory, max));
  });
}

}  // namespace
}  // namespace spillway::prefetch
