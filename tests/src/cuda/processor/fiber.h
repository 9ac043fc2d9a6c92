#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace spillway::processor {

/// A stack on which `body` runs, in parts: resume() runs it until it calls pause() or returns. A
/// fiber whose body has not ended may be dropped or restarted: nothing on its stack is destroyed.
class Fiber {
 public:
  static constexpr std::size_t kStackBytes = 64U << 10U;

  /// `stack` has kStackBytes and outlives the fiber.
  explicit Fiber(std::byte* stack) : stack_{stack} {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() = default;

  /// The next resume() begins `body`, which outlives it and never returns.
  void start(const std::function<void()>& body);
  /// To be called by who is no fiber.
  void resume();
  /// To be called by the body.
  void pause();

 private:
  static void enter(unsigned high, unsigned low);

  std::byte* stack_;
  ucontext_t own_{};
  ucontext_t caller_{};
  const std::function<void()>* body_ = nullptr;
  // What AddressSanitizer keeps of a stack.
  void* shadow_of_own_ = nullptr;
  const void* stack_of_caller_ = nullptr;
  std::size_t bytes_of_caller_ = 0;
};

}  // namespace spillway::processor
