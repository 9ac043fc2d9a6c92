#pragma once

#include <sys/ioctl.h>

#include <functional>
#include <optional>
#include <string>

#include "um/bytes.h"
#include "um/host/managed/page_mapper.h"
#include "um/threads/back_off.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// The system calls of UffdMove, so that a test can inject rare kernel errors. Called from
/// page-fault handlers.
struct UffdCalls {
  /// Like ioctl(2): -1 and errno when the kernel refuses.
  std::function<int(int descriptor, unsigned long request, void* argument)> ioctl =
      [](int descriptor, unsigned long request, void* argument) {
        return ::ioctl(descriptor, request, argument);
      };
  std::function<void(Nanoseconds)> pause = [](Nanoseconds time) { sleep_for(time); };
};

/// Reads a userfaultfd's events for memory that the program moves by mremap(), which waits for the
/// reader. Memory with a reported move stays registered: touching a missing page there raises
/// SIGBUS instead of reading zeros.
class RemapEvents {
 public:
  /// `descriptor` is a userfaultfd with the feature UFFD_FEATURE_EVENT_REMAP and outlives this
  /// object. Throws: Error.
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

/// Moves physical pages between slots and pages by UFFDIO_MOVE (Linux 6.8 or newer, unprivileged).
/// A move copies nothing and takes 1 us for a huge page. Touching a missing page raises SIGBUS. A
/// move waits up to 10 s while the kernel itself holds the page. Changes by mprotect(), mlock() or
/// madvise() that prevent a move are undone.
class UffdMove final : public PageMapper {
 public:
  /// Allocates all near memory now, and moves one page back and forth as a trial. Throws: Error
  /// that says, as half a sentence, why the kernel refuses; OutOfMemory.
  explicit UffdMove(const PageGeometry& geometry, UffdCalls calls = {});
  UffdMove(const UffdMove&) = delete;
  UffdMove& operator=(const UffdMove&) = delete;
  ~UffdMove() override;

  [[nodiscard]] Range region() const override { return region_; }
  [[nodiscard]] Range slot(SlotIndex slot) const override {
    return slots_.subspan(slot * page_, page_);
  }
  void map(PageIndex page, SlotIndex slot) noexcept override;
  void unmap(PageIndex page, SlotIndex slot) noexcept override;
  void remap(PageIndex from, PageIndex to, SlotIndex slot) noexcept override;
  [[nodiscard]] bool mend(PageIndex page) noexcept override;
  [[nodiscard]] std::string_view name() const override { return "uffd_move"; }

 private:
  void open();
  void prepare();
  void register_range(Range range) const;
  /// Returns how many bytes of a page have been moved to `to`, at least `moved`, although the
  /// kernel reports fewer.
  [[nodiscard]] std::size_t skip_moved(const std::byte* to, const std::byte* from,
                                       std::size_t moved) const noexcept;
  /// Fills a hole in a page with zeros. Returns 0 or an errno: EEXIST without a hole.
  [[nodiscard]] int fill(std::byte* small_page, BackOff& waits) const noexcept;
  /// Undoes mprotect() and mlock() on two pages.
  void make_alike(std::byte* one, std::byte* other) const noexcept;
  /// Gives the process a private copy of a page shared with a child.
  void unshare(std::byte* page) const noexcept;
  /// Returns 0 or an errno.
  [[nodiscard]] int move(std::byte* to, std::byte* from) const noexcept;
  void move_or_die(std::byte* to, std::byte* from) const noexcept;
  [[nodiscard]] std::byte* address(PageIndex page) const { return region_.data() + page * page_; }
  void release() noexcept;

  UffdCalls calls_;
  std::size_t page_;
  int descriptor_ = -1;
  Range region_;
  Range slots_;
  std::optional<RemapEvents> remaps_;
};

/// Returns why this process cannot page by UFFDIO_MOVE, as half a sentence; nullopt when it can.
/// Tries it with a real page.
[[nodiscard]] std::optional<std::string> probe_uffd_move();

}  // namespace spillway::um
