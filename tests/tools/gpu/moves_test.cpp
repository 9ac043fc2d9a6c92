#include "tools/gpu/moves.h"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <thread>

namespace spillway::gpu {
namespace {

TEST(Moves, EndWithTheLastOfThem) {
  Moves moves;
  const um::Completion first = moves.completion();
  const um::Completion second = moves.completion();
  first(nullptr);
  const Moves::Clock::time_point before = Moves::Clock::now();
  std::jthread other{[&] { second(nullptr); }};
  EXPECT_GE(moves.end(), before);
}

TEST(Moves, TellWhatOneOfThemFailedWith) {
  Moves moves;
  moves.completion()(std::make_exception_ptr(std::runtime_error{"no"}));
  moves.completion()(nullptr);
  EXPECT_THROW(static_cast<void>(moves.end()), std::runtime_error);
}

}  // namespace
}  // namespace spillway::gpu
