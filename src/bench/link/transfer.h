#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/bench/repetition.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway {

/// How bytes get between far and near memory.
enum class Way {
  kFault,         ///< a thread touches pages that are not near
  kPrefetch,      ///< hints move the same pages
  kPageableCopy,  ///< memcpy from and to ordinary memory
  kPinnedCopy,    ///< explicit copies from and to far memory in RAM
  kFile           ///< explicit copies from and to far memory in a file
};

/// Far to near, near to far, or as many bytes each way at once.
enum class Direction { kIn, kOut, kBoth };

/// As bench files call them: "pinned_copy", "in".
[[nodiscard]] std::string to_string(Way way);
[[nodiscard]] std::string to_string(Direction direction);

/// Nothing when no way, or direction, is called `name`.
[[nodiscard]] std::optional<Way> find_way(const std::string& name);
[[nodiscard]] std::optional<Direction> find_direction(const std::string& name);

/// How long a transfer took.
struct TransferTime {
  Seconds whole{0};  ///< until the bytes were there
  Seconds call{0};   ///< how long the calls that began it held their thread
};

/// Moves of a fixed number of bytes in one way.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Puts the bytes where they have to be before a move. Throws: um::Error when that fails.
  virtual void prepare(Direction /*direction*/) {}
  /// Moves them. Requires: prepared for this since the last move. Throws: um::Error when that
  /// fails.
  [[nodiscard]] virtual TransferTime move(Direction direction) = 0;
  /// Of the memory between which it moves, for people: "far file in /scratch, direct I/O".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Transfers of `size` bytes, a power of two from 4 KiB on. `space` gives far file, link and
/// paging; pages are as large as `size`, and at most 2 MiB. To be used by the calling thread.
/// Throws: um::Error when the device cannot make the memory.
[[nodiscard]] std::unique_ptr<Transfer> make_transfer(um::Device& device, Way way, um::Bytes size,
                                                      const um::ManagedOptions& space);

/// Why `device` cannot move so many bytes in this way and direction, for people; nothing when it
/// can.
[[nodiscard]] std::optional<std::string> why_not(const um::Device& device, Way way,
                                                 Direction direction, um::Bytes size);

/// Near and far memory that a transfer of `size` bytes takes at most.
[[nodiscard]] constexpr um::Bytes room_for_transfer(um::Bytes size) { return 4 * size; }

/// Times moves that end by themselves: from the first call to the last completion.
class MoveTimer {
 public:
  /// Calls `begin(completion)`, which begins a move.
  template <typename Begin>
  void start(const Begin& begin) {
    const Clock::time_point called = Clock::now();
    if (moves_.empty()) begin_ = called;
    // Shared: the move keeps it, however this ends.
    const auto ended = std::make_shared<std::promise<Clock::time_point>>();
    moves_.push_back(ended->get_future());
    begin([ended](std::exception_ptr error) { tell(*ended, std::move(error)); });
    call_ += Clock::now() - called;
  }

  /// Waits for all moves. Throws: what the first that failed did.
  [[nodiscard]] TransferTime wait() {
    Clock::time_point last = begin_;
    for (auto& move : moves_) last = std::max(last, move.get());
    return {.whole = last - begin_, .call = call_};
  }

 private:
  using Clock = std::chrono::steady_clock;

  static void tell(std::promise<Clock::time_point>& ended, std::exception_ptr error) {
    if (error != nullptr) {
      ended.set_exception(std::move(error));
    } else {
      ended.set_value(Clock::now());
    }
  }

  Clock::time_point begin_;
  Seconds call_{0};
  std::vector<std::future<Clock::time_point>> moves_;
};

/// Two equal parts of one managed space, at least two pages each, whose content is put where a
/// measurement wants it.
///
/// Thread safety: none.
class ManagedHalves {
 public:
  /// Halves of at least `size`, and near memory for as many of them. Throws: um::Error.
  ManagedHalves(um::Device& device, um::Bytes size, std::size_t near_halves,
                um::ManagedOptions options);

  /// The first `size` bytes of a half, 0 or 1.
  [[nodiscard]] um::Range part(std::size_t half) const;
  [[nodiscard]] um::Bytes page() const { return page_; }
  [[nodiscard]] um::Hints& hints() const { return space_->hints(); }
  [[nodiscard]] std::string description() const { return space_->description(); }

  /// Has content in far memory only, from now on. Free of charge when it is clean.
  void put_far(std::size_t half);
  /// Has content in near memory only. Requires: room for it.
  void put_near(std::size_t half);
  /// Has no content.
  void drop(std::size_t half);

 private:
  // All of a half, which is larger than its part where that is less than two pages.
  [[nodiscard]] um::Range whole(std::size_t half) const;
  void move(std::size_t half, um::MemoryTier tier);

  um::Bytes size_;
  um::Bytes page_;
  um::Bytes half_;
  um::Ledger ledger_;
  std::unique_ptr<um::ManagedSpace> space_;
  std::unique_ptr<um::Stream> stream_;  // without work
  std::array<bool, 2> has_content_{};
};

}  // namespace spillway
