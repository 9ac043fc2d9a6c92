#include "src/cuda/layout/step_numbers.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory_resource>
#include <optional>

#include "tests/src/cuda/processor/function_status.h"
#include "um/cuda/driver/check.h"

namespace spillway::cuda {
namespace {

std::uint64_t step_of(const StepContext& context) { return context.step; }

// Enqueues a read of the value.
void copy_number(const StepNumber<std::uint64_t>& number, std::uint64_t& into) {
  um::check(cudaMemcpyAsync(&into, number.get(), sizeof into, cudaMemcpyDeviceToHost, nullptr));
}

TEST(StepNumbers, AreZeroBeforeTheFirstStep) {
  StepNumbers numbers{nullptr};
  const auto number = numbers.add(step_of);
  std::uint64_t value = 7;
  copy_number(number, value);
  EXPECT_EQ(value, 0U);
}

TEST(StepNumbers, AreZeroInASlotThatAnotherOneHasLeft) {
  StepNumbers numbers{nullptr};
  std::optional first{numbers.add(step_of)};
  numbers.begin_step({.step = 5});
  const std::uint64_t* const slot = first->get();
  first.reset();
  const auto second = numbers.add(step_of);
  ASSERT_EQ(second.get(), slot);
  std::uint64_t value = 7;
  copy_number(second, value);
  EXPECT_EQ(value, 0U);
}

// The GPU does the work of four steps only when something waits for it.
TEST(StepNumbers, OfALaterStepLeaveThoseThatTheGpuHasNotReadYet) {
  StepNumbers numbers{nullptr};
  const auto number = numbers.add(step_of);
  std::array<std::uint64_t, 4> read_values{};
  {
    const processor::LateCopies late;
    for (std::size_t i = 0; i < read_values.size(); ++i) {
      numbers.begin_step({.step = i + 1});
      copy_number(number, read_values[i]);
    }
  }
  EXPECT_EQ(read_values, (std::array<std::uint64_t, 4>{1, 2, 3, 4}));
}

// Counts the blocks that are taken and given back.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  int taken = 0;

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    ++taken;
    return std::pmr::new_delete_resource()->allocate(size, alignment);
  }
  void do_deallocate(void* memory, std::size_t size, std::size_t alignment) override {
    --taken;
    std::pmr::new_delete_resource()->deallocate(memory, size, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

TEST(StepNumbers, AreWrittenInTheGivenMemoryUntilTheGpuHasReadThem) {
  CountedMemory memory;
  std::uint64_t value = 0;
  const processor::LateCopies late;
  {
    StepNumbers numbers{nullptr, memory};
    EXPECT_EQ(memory.taken, 2);
    const auto number = numbers.add(step_of);
    numbers.begin_step({.step = 3});
    copy_number(number, value);
    numbers.begin_step({.step = 4});
  }  // waits for the copies
  EXPECT_EQ(value, 3U);
  EXPECT_EQ(memory.taken, 0);
}

}  // namespace
}  // namespace spillway::cuda
