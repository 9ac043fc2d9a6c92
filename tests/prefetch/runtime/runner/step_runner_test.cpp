#include "prefetch/runtime/runner/step_runner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/prefetch/runtime/step_modes.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// A GPU that gets to its work when the test says so: notices wait, everything else is at once.
class SlowStream final : public um::Stream {
 public:
  void enqueue(std::function<void()> work) override { work(); }
  [[nodiscard]] std::shared_ptr<const um::Event> record() override { return nullptr; }
  void wait(std::shared_ptr<const um::Event> /*event*/) override {}
  void synchronize() override {}
  void notify(um::Notice then) override { notices_.push_back(std::move(then)); }
  void read(std::span<const std::byte> /*near*/, std::span<std::byte> /*into*/) override {}
  void write(std::span<const std::byte> /*from*/, std::span<std::byte> /*near*/) override {}

  // Everything so far has ended, a millisecond after the other.
  void catch_up() {
    for (const um::Notice& notice : std::exchange(notices_, {})) notice(now_ += 1ms);
  }

 private:
  std::vector<um::Notice> notices_;
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

// Notes what it is told. Its step ends when the stream has caught up.
class NotedMemory final : public StepMemory {
 public:
  explicit NotedMemory(SlowStream& stream) : stream_{stream} {}

  void begin_step() override { note("begin step"); }
  void begin_run(Position position) override { note("begin", position); }
  [[nodiscard]] std::byte* address(DataId /*id*/) const override { return nullptr; }
  [[nodiscard]] std::byte* workspace() const override { return nullptr; }
  void after_launch(Position position) override { note("launched", position); }
  void end_run(Position position) override {
    note("end", position);
    if (position == failing) throw um::Error{"cannot discard"};
  }
  void fail(std::exception_ptr error) override { error_ = std::move(error); }
  void end_step() override {
    stream_.catch_up();
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  [[nodiscard]] Timeline moves() const override {
    return {.offloads = {{.begin = 1ns, .end = 2ns}}};
  }

  std::vector<std::string> log;
  Position failing = 99;

 private:
  void note(const std::string& what) { log.push_back(what); }
  void note(const std::string& what, Position p) { log.push_back(what + " " + std::to_string(p)); }

  SlowStream& stream_;
  std::exception_ptr error_;
};

class StepRunnerTest : public ::testing::Test {
 protected:
  TaskGraph graph = chain(1, pages(1));  // its first two tasks
  Plan plan{.runs = {{.task = TaskId{0}}, {.task = TaskId{1}}}};
  SlowStream stream;
  NotedMemory memory{stream};
  StepRunner runner{plan, memory, stream};
};

TEST_F(StepRunnerTest, LaunchesAheadAndTellsEndsInOrder) {
  const Timeline timeline = runner.run(
      [&](Position position) { memory.log.push_back("launch " + std::to_string(position)); });
  EXPECT_EQ(memory.log,
            (std::vector<std::string>{"begin step", "begin 0", "launch 0", "launched 0", "begin 1",
                                      "launch 1", "launched 1", "end 0", "end 1"}));
  // Four notices a millisecond apart: both runs took one, with one between them.
  ASSERT_EQ(timeline.runs.size(), 2U);
  EXPECT_EQ(timeline.runs[0].end - timeline.runs[0].begin, 1ms);
  EXPECT_EQ(timeline.runs[1].begin - timeline.runs[0].end, 1ms);
  EXPECT_EQ(timeline.offloads.size(), 1U);
}

TEST_F(StepRunnerTest, AFailureAtTheEndOfARunComesOut) {
  memory.failing = 0;
  EXPECT_THROW(static_cast<void>(runner.run([](Position) {})), um::Error);
}

}  // namespace
}  // namespace spillway::prefetch
