#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>

#include "um/stream.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// An event that a thread fires.
class ThreadEvent final : public Event {
 public:
  void fire();
  [[nodiscard]] bool has_fired() const override;
  void wait() const override;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable fired_;
  bool has_fired_ = false;
};

/// A stream that runs its work on one host thread. Its destructor waits for all work.
class ThreadStream final : public Stream {
 public:
  /// `name` names the thread: at most 15 characters.
  explicit ThreadStream(const std::string& name) : engine_{name} {}

  void enqueue(std::function<void()> work) override;
  [[nodiscard]] std::shared_ptr<const Event> record() override;
  void wait(std::shared_ptr<const Event> event) override;
  void synchronize() override;
  void notify(Notice then) override;
  [[nodiscard]] bool has_free_notices() const override { return true; }
  void read(std::span<const std::byte> near, std::span<std::byte> into) override;
  void write(std::span<const std::byte> from, std::span<std::byte> near) override;

 private:
  void do_unless_failed(const std::function<void()>& work);
  template <class Work>
  void do_or_fail(const Work& work) noexcept;

  std::mutex mutex_;
  std::exception_ptr failure_;  // the first one since the last synchronize()
  Engine engine_;               // last: its jobs use the other members until it ends
};

}  // namespace spillway::um
