#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::world {

/// A kind of call of the program that a schedule counts. The far file is told from others by having
/// no name.
enum class Call : std::size_t {
  kOpen,
  kRead,
  kWrite,
  kFarRead,
  kFarWrite,
  kSync,
  kRename,
  kUnlink,
  kAllocate,  ///< room in a file: fallocate, ftruncate
  kMap,       ///< mmap without a file, by the program itself
  kAdvise,    ///< madvise, by the program itself
  kMovePage,  ///< UFFDIO_MOVE
  kNew        ///< operator new, by the program itself
};
inline constexpr std::array<std::string_view, 13> kCallNames{
    "open",   "read",     "write", "far-read", "far-write", "sync", "rename",
    "unlink", "allocate", "map",   "advise",   "move-page", "new"};

/// What happens instead of a call, or before it.
enum class Effect {
  kNone,
  kError,  ///< the call fails with an errno
  kShort,  ///< a read or write moves half of what was asked for
  kRot,    ///< a read gets one wrong bit
  kDelay,  ///< the call comes later
  kSignal,
  kKill  ///< the process ends at once
};

/// Calls number `first` (counted from 1) to `first + times - 1` of one kind meet an effect.
struct Fault {
  Call call;
  std::uint64_t first;
  std::uint64_t times;
  Effect effect;
  int value;  ///< the errno, the signal, or microseconds
};

/// What the program did, for whoever started it: a file that both map.
struct Counts {
  std::array<std::atomic<std::uint64_t>, kCallNames.size()> calls;
  std::array<std::atomic<std::uint64_t>, 16>
      fired;  ///< how often each fault of the schedule struck
};

/// Calls count from here on: main() begins.
void begin_counting() noexcept;

/// The fault that the next call of this kind meets, which is counted. Delays, signals and kills
/// have happened when this returns.
[[nodiscard]] std::optional<Fault> next_call(Call call) noexcept;

/// Whether the next call of this kind, which is counted, fails with an errno; errno is that then.
[[nodiscard]] bool fails(Call call) noexcept;

/// Whether next_call() has counted one of this kind.
[[nodiscard]] bool has_called(Call call) noexcept;

}  // namespace spillway::world
