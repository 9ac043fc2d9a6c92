#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "um/stream.h"
#include "um/threads/thread_stream.h"

// The contract of every stream. A test instantiates it with a way to make streams.

namespace spillway::um {

/// Makes streams of one kind. Their dependencies live as long as the maker.
struct StreamMaker {
  std::string kind;
  std::function<std::unique_ptr<Stream>(const std::string& name)> make;
  /// Skips or fails the test if such streams are unavailable.
  std::function<void()> require = [] {};
};

// Gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(const StreamMaker& maker, std::ostream* out) { *out << maker.kind; }

inline std::string kind_of(const ::testing::TestParamInfo<StreamMaker>& info) {
  return info.param.kind;
}

class StreamContract : public ::testing::TestWithParam<StreamMaker> {
 protected:
  void SetUp() override { GetParam().require(); }
  [[nodiscard]] static std::unique_ptr<Stream> make(const std::string& name = "test") {
    return GetParam().make(name);
  }
};

TEST_P(StreamContract, DoesItsWorkInOrder) {
  std::vector<int> done;
  const auto stream = make();
  for (int i = 0; i < 3; ++i) stream->enqueue([&done, i] { done.push_back(i); });
  stream->synchronize();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
}

TEST_P(StreamContract, FiresAnEventOnlyWhenEarlierWorkHasEnded) {
  ThreadEvent gate;
  const auto stream = make();
  stream->enqueue([&] { gate.wait(); });
  const auto event = stream->record();
  EXPECT_FALSE(event->has_fired());  // the gate is shut
  gate.fire();
  event->wait();
  EXPECT_TRUE(event->has_fired());
}

TEST_P(StreamContract, WaitsForAnEventOfAnotherStream) {
  ThreadEvent gate;
  int value = 0;
  int seen = 0;
  const auto writer = make("writer");
  const auto reader = make("reader");
  writer->enqueue([&] {
    gate.wait();
    value = 7;
  });
  reader->wait(writer->record());
  reader->enqueue([&] { seen = value; });
  gate.fire();
  reader->synchronize();
  EXPECT_EQ(seen, 7);
}

TEST_P(StreamContract, WaitsForAnEventOfTheHost) {
  const auto gate = std::make_shared<ThreadEvent>();
  bool has_fired = false;
  const auto stream = make();
  stream->wait(gate);
  stream->enqueue([&] { has_fired = gate->has_fired(); });
  gate->fire();
  stream->synchronize();
  EXPECT_TRUE(has_fired);
}

TEST_P(StreamContract, ThrowsTheFirstFailureOnceAndSkipsLaterWork) {
  std::vector<int> done;
  const auto stream = make();
  stream->enqueue([&] { done.push_back(1); });
  stream->enqueue([] { throw std::runtime_error{"first"}; });
  stream->enqueue([&] {
    done.push_back(2);
    throw std::runtime_error{"second"};
  });
  try {
    stream->synchronize();
    FAIL() << "no failure";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(done, (std::vector<int>{1}));
  EXPECT_NO_THROW(stream->synchronize());
}

TEST_P(StreamContract, WorksAgainAfterItsFailureWasThrown) {
  int done = 0;
  const auto stream = make();
  stream->enqueue([] { throw std::runtime_error{"failure"}; });
  EXPECT_THROW(stream->synchronize(), std::runtime_error);
  stream->enqueue([&] { done = 1; });
  stream->synchronize();
  EXPECT_EQ(done, 1);
}

TEST_P(StreamContract, FiresEventsAndGivesNoticesAfterAFailure) {
  const auto stream = make();
  bool is_told = false;
  stream->enqueue([] { throw std::runtime_error{"failure"}; });
  stream->notify([&](auto) { is_told = true; });
  stream->record()->wait();  // otherwise never ends
  EXPECT_THROW(stream->synchronize(), std::runtime_error);
  EXPECT_TRUE(is_told);
}

TEST_P(StreamContract, GivesNoticesInOrderAfterTheWorkBeforeThem) {
  std::vector<std::string> seen;
  const auto stream = make();
  stream->enqueue([&] { seen.emplace_back("work"); });
  stream->notify([&](auto) { seen.emplace_back("first"); });
  stream->notify([&](auto) { seen.emplace_back("second"); });
  stream->synchronize();
  EXPECT_EQ(seen, (std::vector<std::string>{"work", "first", "second"}));
}

TEST_P(StreamContract, GivesNoticesThatWorkAsksForWithMomentsThatFollowEachOther) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> moments;
  const auto stream = make();
  stream->enqueue([&] {
    for (int i = 0; i < 3; ++i) {
      stream->notify([&](Clock::time_point moment) { moments.push_back(moment); });
    }
  });
  stream->synchronize();
  ASSERT_EQ(moments.size(), 3U);
  EXPECT_LE(moments[0], moments[1]);
  EXPECT_LE(moments[1], moments[2]);
}

TEST_P(StreamContract, FinishesItsWorkAtItsEnd) {
  int done = 0;
  int told = 0;
  std::shared_ptr<const Event> event;
  {
    const auto stream = make();
    for (int i = 0; i < 100; ++i) stream->enqueue([&] { ++done; });
    event = stream->record();
    stream->notify([&](auto) { ++told; });
  }
  EXPECT_EQ(done, 100);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(event->has_fired());
}

}  // namespace spillway::um
