#include "um/host/thread_stream.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "um/host/thread_event.h"

namespace spillway::um {
namespace {

TEST(ThreadStream, DoesItsWorkInOrder) {
  std::vector<int> done;
  ThreadStream stream{"test"};
  for (int i = 0; i < 3; ++i) stream.enqueue([&done, i] { done.push_back(i); });
  stream.synchronize();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
}

TEST(ThreadStream, FiresAnEventOnlyWhenEarlierWorkHasEnded) {
  ThreadEvent gate;
  ThreadStream stream{"test"};
  stream.enqueue([&] { gate.wait(); });
  const auto event = stream.record();
  EXPECT_FALSE(event->has_fired());  // the gate is shut
  gate.fire();
  event->wait();
  EXPECT_TRUE(event->has_fired());
}

TEST(ThreadStream, WaitsForAnEventOfAnotherStream) {
  ThreadEvent gate;
  int value = 0;
  int seen = 0;
  ThreadStream writer{"writer"};
  ThreadStream reader{"reader"};
  writer.enqueue([&] {
    gate.wait();
    value = 7;
  });
  reader.wait(writer.record());
  reader.enqueue([&] { seen = value; });
  gate.fire();
  reader.synchronize();
  EXPECT_EQ(seen, 7);
}

TEST(ThreadStream, ThrowsTheFirstFailureOnceAndSkipsLaterWork) {
  std::vector<int> done;
  ThreadStream stream{"test"};
  stream.enqueue([&] { done.push_back(1); });
  stream.enqueue([] { throw std::runtime_error{"first"}; });
  stream.enqueue([&] {
    done.push_back(2);
    throw std::runtime_error{"second"};
  });
  try {
    stream.synchronize();
    FAIL() << "no failure";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(done, (std::vector<int>{1}));
  EXPECT_NO_THROW(stream.synchronize());
}

TEST(ThreadStream, WorksAgainAfterItsFailureWasThrown) {
  int done = 0;
  ThreadStream stream{"test"};
  stream.enqueue([] { throw std::runtime_error{"failure"}; });
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  stream.enqueue([&] { done = 1; });
  stream.synchronize();
  EXPECT_EQ(done, 1);
}

TEST(ThreadStream, FiresEventsAfterAFailure) {
  ThreadStream stream{"test"};
  stream.enqueue([] { throw std::runtime_error{"failure"}; });
  stream.record()->wait();  // would else never end
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
}

TEST(ThreadStream, FinishesItsWorkAtItsEnd) {
  int done = 0;
  std::shared_ptr<const Event> event;
  {
    ThreadStream stream{"test"};
    for (int i = 0; i < 100; ++i) stream.enqueue([&] { ++done; });
    event = stream.record();
  }
  EXPECT_EQ(done, 100);
  EXPECT_TRUE(event->has_fired());
}

}  // namespace
}  // namespace spillway::um
