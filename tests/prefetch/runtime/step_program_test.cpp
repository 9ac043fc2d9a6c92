#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "prefetch/runtime/given_step.h"
#include "tests/prefetch/runtime/step_equivalence.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using um::Lane;
using Command = StepProgram::Command;

std::string text(Lane lane) {
  return lane == Lane::kCompute ? "run" : lane == Lane::kIn ? "in" : "out";
}

// Returns "run 2 after out 1, in 1 *": with its waits, and a star if a command waits for it.
std::string text(const Command& command) {
  std::string line = text(command.lane) + " " + std::to_string(command.index);
  const auto add = [&](const char* when, const std::vector<StepProgram::Wait>& waits) {
    for (const auto& wait : waits) {
      line += when + text(wait.lane) + " " + std::to_string(wait.count);
    }
  };
  add(" after ", command.waits);
  return line + (command.is_awaited ? " *" : "");
}

std::vector<std::string> lines(const StepProgram& program) {
  std::vector<std::string> all;
  for (const Command& command : program.commands) all.push_back(text(command));
  return all;
}

// Runs 0 to 3; a block leaves after run 0 and is back for run 3.
Plan swap() {
  Plan plan;
  plan.runs.resize(4);
  plan.runs[2].after = {.runs = 2, .offloads = 1};
  plan.runs[3].after = {.runs = 3, .offloads = 1, .prefetches = 1};
  plan.offloads = {{.after = {.runs = 1}}};
  plan.prefetches = {{.after = {.runs = 2, .offloads = 1}}};
  return plan;
}

TEST(StepProgram, GivesMovesAsSoonAsTheyMayStart) {
  EXPECT_EQ(lines(make_program(swap())),
            (std::vector<std::string>{"run 0 *", "out 0 after run 1 *", "run 1 *",
                                      "in 0 after out 1 after run 2 *", "run 2 after out 1",
                                      "run 3 after in 1"}));
}

TEST(StepProgram, LeavesOutWhatHasEndedBefore) {
  EXPECT_EQ(lines(make_program(swap(), 1)),
            (std::vector<std::string>{"out 0 *", "run 1 *", "in 0 after out 1 after run 2 *",
                                      "run 2 after out 1", "run 3 after in 1"}));
}

// Its room is free when the reader has ended, too; the next offload does not wait.
TEST(StepProgram, CopiesWhatIsStillRead) {
  Plan plan = swap();
  plan.offloads[0].free_after = 2;
  plan.offloads.push_back({.after = {.runs = 1}});
  EXPECT_EQ(lines(make_program(plan)),
            (std::vector<std::string>{"run 0 *", "out 0 after run 1 *", "out 1", "run 1 *",
                                      "in 0 after out 1 after run 2 *", "run 2 after out 1",
                                      "run 3 after in 1"}));
}

// A command that takes the room waits for the block's last reader, though its condition names an
// earlier run.
TEST(StepProgram, TakesRoomWhenItIsReadNoMore) {
  Plan plan;
  plan.runs.resize(4);
  plan.runs[3].after = {.runs = 3, .offloads = 1, .prefetches = 1};
  plan.offloads = {{.after = {.runs = 1}, .free_after = 3}};
  plan.prefetches = {{.after = {.runs = 1, .offloads = 1}}};
  EXPECT_EQ(
      lines(make_program(plan)),
      (std::vector<std::string>{"run 0 *", "out 0 after run 1 *", "run 1", "run 2 *",
                                "in 0 after out 1 after run 3 *", "run 3 after out 1 after in 1"}));
}

// Derives what is guaranteed to have ended when each command starts and ends, from its lane's order
// and the waits alone.
class Ends {
 public:
  using Counts = std::array<std::uint32_t, um::kLanes>;

  void add(const Command& command, Position first) {
    Counts known = lanes_[at(command.lane)];
    known[0] = std::max(known[0], first);
    join(known, command.waits);
    start_ = known;
    known[at(command.lane)] = command.index + 1;
    lanes_[at(command.lane)] = known;
    ends_[at(command.lane)].push_back(known);
    first_ = first;
  }
  [[nodiscard]] Progress start() const { return progress(start_); }

 private:
  static std::size_t at(Lane lane) { return static_cast<std::size_t>(lane); }
  static Progress progress(const Counts& counts) {
    return {.runs = counts[at(Lane::kCompute)],
            .offloads = counts[at(Lane::kOut)],
            .prefetches = counts[at(Lane::kIn)]};
  }
  void join(Counts& known, const std::vector<StepProgram::Wait>& waits) const {
    for (const auto& wait : waits) {
      const std::uint32_t skipped = wait.lane == Lane::kCompute ? first_ : 0;
      // Throws if the command waits for a later command.
      const Counts& other = ends_[at(wait.lane)].at(wait.count - 1 - skipped);
      for (std::size_t i = 0; i < known.size(); ++i) known[i] = std::max(known[i], other[i]);
    }
  }

  Position first_ = 0;
  Counts start_{};
  std::array<Counts, um::kLanes> lanes_{};
  std::array<std::vector<Counts>, um::kLanes> ends_;
};

// No command starts before its plan's condition holds, directly or transitively.
RC_GTEST_PROP(StepProgramProperty, WaitsForAllThatAPlanNames, ()) {
  const TaskGraph graph = random_step();
  const Profile profile = random_profile(graph);
  const Plan plan = verified_plan(random_step_problem(graph, profile), "joint");
  const Position first = *rc::gen::inRange<Position>(0, 2);
  Ends ends;
  std::array<std::size_t, um::kLanes> given{};
  for (const Command& command : make_program(plan, first).commands) {
    ends.add(command, first);
    ++given[static_cast<std::size_t>(command.lane)];
    const auto& move = command.lane == Lane::kOut ? plan.offloads : plan.prefetches;
    const Progress& after =
        command.lane == Lane::kCompute ? plan.runs[command.index].after : move[command.index].after;
    Progress started = ends.start();
    // Its own lane is in order.
    if (command.lane == Lane::kCompute) started.runs = command.index;
    RC_ASSERT(started.reaches(after));
    if (command.lane == Lane::kOut) continue;
    for (std::uint32_t i = 0; i < after.offloads; ++i) {
      RC_ASSERT(started.runs >= plan.offloads[i].frees_after());
    }
  }
  RC_ASSERT(given[0] == plan.runs.size() - first);
  RC_ASSERT(given[1] == plan.prefetches.size());
  RC_ASSERT(given[2] == plan.offloads.size());
}

}  // namespace
}  // namespace spillway::prefetch
