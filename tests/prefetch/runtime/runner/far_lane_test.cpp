#include <gtest/gtest.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "prefetch/runtime/runner/step_runner.h"

namespace spillway::prefetch {
namespace {

// A step that comes as far as the test says.
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
  lane.begin_step(FarLane::Clock::now(), update);  // of the next step, as far as this one was
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
