#pragma once

namespace spillway::um {

/// A point in a Stream's work. Fires once, when all work before it has ended.
///
/// Thread safety: safe to call from several threads at once.
class Event {
 public:
  virtual ~Event() = default;
  [[nodiscard]] virtual bool has_fired() const = 0;
  /// Blocks the caller until the event has fired.
  virtual void wait() const = 0;
};

}  // namespace spillway::um
