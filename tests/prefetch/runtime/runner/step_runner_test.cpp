#include "prefetch/runtime/runner/step_runner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/prefetch/runtime/step_modes.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// A GPU that works when the test says so: notices are delayed, everything else happens at once.
class SlowStream final : public um::Stream {
 public:
  void enqueue(std::function<void()> work) override { work(); }
  [[nodiscard]] std::shared_ptr<const um::Event> record() override { return nullptr; }
  void wait(std::shared_ptr<const um::Event> /*event*/) override {}
  void synchronize() override {}
  void notify(um::Notice then) override { notices_.push_back(std::move(then)); }
  void read(std::span<const std::byte> /*near*/, std::span<std::byte> /*into*/) override {}
  void write(std::span<const std::byte> /*from*/, std::span<std::byte> /*near*/) override {}

  // Delivers all notices so far, a millisecond apart.
  void catch_up() {
    for (const um::Notice& notice : std::exchange(notices_, {})) notice(now_ += 1ms);
  }

 private:
  std::vector<um::Notice> notices_;
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

// Records its calls. Its step ends when the stream has caught up.
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
    if (is_resident) {
      later_ = std::jthread{[this] {
        std::this_thread::sleep_for(20ms);
        stream_.catch_up();
      }};
      return;
    }
    stream_.catch_up();
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  [[nodiscard]] Timeline moves() const override {
    return {.offloads = {{.begin = 1ns, .end = 2ns}}};
  }

  std::vector<std::string> log;
  Position failing = 99;
  bool is_resident = false;  // has no moves, so its step does not wait for the stream

 private:
  void note(const std::string& what) { log.push_back(what); }
  void note(const std::string& what, Position p) { log.push_back(what + " " + std::to_string(p)); }

  SlowStream& stream_;
  std::exception_ptr error_;
  std::jthread later_;
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
  // Four notices a millisecond apart: each run takes one millisecond, with one between them.
  ASSERT_EQ(timeline.runs.size(), 2U);
  EXPECT_EQ(timeline.runs[0].end - timeline.runs[0].begin, 1ms);
  EXPECT_EQ(timeline.runs[1].begin - timeline.runs[0].end, 1ms);
  EXPECT_EQ(timeline.offloads.size(), 1U);
}

TEST_F(StepRunnerTest, KnowsWhenRunsEndedThatNobodyElseWaitsFor) {
  memory.is_resident = true;
  const Timeline timeline = runner.run([](Position) {});
  ASSERT_EQ(timeline.runs.size(), 2U);
  EXPECT_EQ(timeline.runs[1].end - timeline.runs[1].begin, 1ms);
}

TEST_F(StepRunnerTest, AFailureAtTheEndOfARunComesOut) {
  memory.failing = 0;
  EXPECT_THROW(static_cast<void>(runner.run([](Position) {})), um::Error);
}

// A step with progress set by the test.
class StepOnCall final : public StepMemory {
 public:
  void wait_for(const Progress& after) override {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return failure_ != nullptr || reached_.reaches(after); });
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }
  void fail(std::exception_ptr error) override {
    const std::lock_guard lock{mutex_};
    if (failure_ == nullptr) failure_ = std::move(error);
    changed_.notify_all();
  }
  void reach(const Progress& progress) {
    const std::lock_guard lock{mutex_};
    reached_ = progress;
    changed_.notify_all();
  }
  [[nodiscard]] bool has_failed() {
    const std::lock_guard lock{mutex_};
    return failure_ != nullptr;
  }

  void begin_step() override {}
  void begin_run(Position /*position*/) override {}
  [[nodiscard]] std::byte* address(DataId /*id*/) const override { return nullptr; }
  [[nodiscard]] std::byte* workspace() const override { return nullptr; }
  void after_launch(Position /*position*/) override {}
  void end_run(Position /*position*/) override {}
  void end_step() override {}
  [[nodiscard]] Timeline moves() const override { return {}; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress reached_;
  std::exception_ptr failure_;
};

class FarLaneTest : public ::testing::Test {
 protected:
  FarLaneTest() {
    plan.far_runs = {{.update = 1, .after = {.offloads = 1}},
                     {.update = 0, .after = {.offloads = 2}}};
  }
  // Waits until `count` updates have begun.
  void wait_until_begun(std::size_t count) {
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] { return updates.size() >= count; });
  }
  [[nodiscard]] FarLane::Update record() {
    return [this](std::uint32_t update) {
      const std::lock_guard lock{mutex};
      updates.push_back(update);
      changed.notify_all();
    };
  }
  Plan plan;
  StepOnCall memory;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::uint32_t> updates;
};

TEST_F(FarLaneTest, RunsEachAfterWhatItWaitsFor) {
  FarLane lane{plan, memory};
  const FarLane::Update update = record();
  lane.begin_step(FarLane::Clock::now(), update);
  memory.reach({.offloads = 1});
  wait_until_begun(1);
  EXPECT_EQ(updates, std::vector<std::uint32_t>{1});
  memory.reach({.offloads = 2});
  lane.end_step();
  EXPECT_EQ(updates, (std::vector<std::uint32_t>{1, 0}));
  ASSERT_EQ(lane.intervals().size(), 2U);
  EXPECT_LE(lane.intervals()[0].begin, lane.intervals()[0].end);
  EXPECT_LE(lane.intervals()[0].end, lane.intervals()[1].begin);
  lane.begin_step(FarLane::Clock::now(), update);  // the next step, with the same progress
  lane.end_step();
  EXPECT_EQ(updates.size(), 4U);
}

TEST_F(FarLaneTest, FailsTheStepWhereAnUpdateFails) {
  FarLane lane{plan, memory};
  const FarLane::Update update = [](std::uint32_t) { throw std::runtime_error{"no far memory"}; };
  memory.reach({.offloads = 2});
  lane.begin_step(FarLane::Clock::now(), update);
  try {
    lane.end_step();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no far memory");
  }
  EXPECT_TRUE(memory.has_failed());
}

TEST_F(FarLaneTest, EndsWithAStepThatFails) {
  FarLane lane{plan, memory};
  const FarLane::Update update = record();
  memory.reach({.offloads = 1});
  lane.begin_step(FarLane::Clock::now(), update);
  wait_until_begun(1);
  memory.fail(std::make_exception_ptr(std::runtime_error{"a move failed"}));
  lane.abandon();
  EXPECT_EQ(updates, std::vector<std::uint32_t>{1});
  EXPECT_THROW(lane.end_step(), std::runtime_error);
}

}  // namespace
}  // namespace spillway::prefetch
