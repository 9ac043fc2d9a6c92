#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "tests/src/cuda/processor/fiber.h"

namespace spillway::processor {

constexpr std::size_t kMaxThreads = 1024;  ///< of a block, as on a device

/// Fibers for as many threads as can wait in a block.
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

/// Whether an address is of the stack that the process began with.
[[nodiscard]] bool is_on_first_stack(const std::byte* address);

}  // namespace spillway::processor
