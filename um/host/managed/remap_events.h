#pragma once

#include "um/threads/engine.h"

namespace spillway::um {

/// Reads what a userfaultfd tells of memory that the program moves to other addresses by mremap(),
/// which waits for that. Memory whose move is told stays watched: a touch of what is missing there
/// is a SIGBUS, and does not read zeros.
class RemapEvents {
 public:
  /// `descriptor` is a userfaultfd with the feature UFFD_FEATURE_EVENT_REMAP, and outlives it.
  /// Throws: Error.
  explicit RemapEvents(int descriptor);
  RemapEvents(const RemapEvents&) = delete;
  RemapEvents& operator=(const RemapEvents&) = delete;
  ~RemapEvents();

 private:
  /// Owns an eventfd.
  class EventFd {
   public:
    /// Throws: Error.
    EventFd();
    EventFd(const EventFd&) = delete;
    EventFd& operator=(const EventFd&) = delete;
    ~EventFd();
    [[nodiscard]] int number() const { return number_; }

   private:
    int number_;
  };

  void read_all(int descriptor) const;

  EventFd end_;
  Engine reading_;
};

}  // namespace spillway::um
