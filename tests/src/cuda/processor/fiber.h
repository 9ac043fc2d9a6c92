#pragma once

#include <ucontext.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

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

  /// Makes the next resume() begin `body`. Requires: `body` outlives the fiber.
  void start(const std::function<void()>& body);
  /// Returns when `body` pauses or returns. Requires: the caller is not a fiber.
  void resume();
  /// Returns to resume(). Requires: the caller is the body.
  void pause();
  /// Pauses, and lets another paused body go on; its pause() returns to the last resume().
  void pause_for(Fiber& other);

 private:
  // A paused stack: its pointer, or the context that the system switches to.
  struct Continuation {
    void* pointer = nullptr;
    ucontext_t context{};
  };
  static thread_local Continuation caller;  // the stack that resume() left last
  static void go(Continuation& from, Continuation& to);
  static void enter();
  // Lets own_ begin with enter().
  void prepare();

  std::byte* stack_;
  Continuation own_;
  bool is_idle_ = false;  // paused without a body: start() keeps the stack
  const std::function<void()>* body_ = nullptr;
};

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
