#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace spillway::processor {

/// A stack that runs `body` in parts: resume() runs it until it calls pause(). A fiber may be
/// dropped or restarted at any time, without destroying the objects on its stack.
class Fiber {
 public:
  static constexpr std::size_t kStackBytes = 64U << 10U;

  /// Requires: `stack` has kStackBytes and outlives the fiber.
  explicit Fiber(std::byte* stack) : stack_{stack} {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() = default;

  /// Makes the next resume() begin `body`. Requires: `body` outlives the fiber and never returns.
  void start(const std::function<void()>& body);
  /// Requires: the caller is not a fiber.
  void resume();
  /// Requires: the caller is the body.
  void pause();

 private:
  static void enter(unsigned high, unsigned low);

  std::byte* stack_;
  ucontext_t own_{};
  ucontext_t caller_{};
  const std::function<void()>* body_ = nullptr;
  // AddressSanitizer's data of a stack.
  void* shadow_of_own_ = nullptr;
  const void* stack_of_caller_ = nullptr;
  std::size_t bytes_of_caller_ = 0;
};

}  // namespace spillway::processor
