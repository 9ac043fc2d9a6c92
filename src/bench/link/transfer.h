#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "src/bench/timing_summary.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/options.h"

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

}  // namespace spillway
