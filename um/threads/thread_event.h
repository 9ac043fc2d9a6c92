#pragma once

#include <condition_variable>
#include <mutex>

#include "um/stream.h"

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

}  // namespace spillway::um
