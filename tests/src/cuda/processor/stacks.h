#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "tests/src/cuda/processor/fiber.h"

namespace spillway::processor {

constexpr std::size_t kMaxThreads = 1024;  ///< per block, as on a device

/// Fibers for all threads of a block that may wait.
class Stacks {
 public:
  Stacks();
  [[nodiscard]] Fiber& take();
  void give_back(Fiber& fiber);
  [[nodiscard]] bool contain(const std::byte* address) const;

 private:
  std::byte* memory_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> free_;
};
[[nodiscard]] Stacks& stacks();

/// Returns true if an address is in the main thread's stack.
[[nodiscard]] bool is_on_first_stack(const std::byte* address);

}  // namespace spillway::processor
