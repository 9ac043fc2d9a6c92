#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::world {

/// The kinds of calls that a schedule counts. The far file is recognised by having no name.
enum class Call : std::size_t {
  kOpen,
  kRead,
  kWrite,
  kFarRead,
  kFarWrite,
  kSync,
  kRename,
  kUnlink,
  kAllocate,  ///< space in a file: fallocate, ftruncate
  kMap,       ///< mmap without a file, by the program itself
  kAdvise,    ///< madvise, by the program itself
  kMovePage,  ///< UFFDIO_MOVE
  kNew        ///< operator new, by the program itself
};
inline constexpr std::array<std::string_view, 13> kCallNames{
    "open",   "read",     "write", "far-read", "far-write", "sync", "rename",
    "unlink", "allocate", "map",   "advise",   "move-page", "new"};

/// The effect of a fault on a call.
enum class Effect {
  kNone,
  kError,  ///< the call fails with an errno
  kShort,  ///< a read or write transfers half of the size
  kRot,    ///< a read gets one wrong bit
  kDelay,  ///< the call waits first
  kSignal,
  kKill  ///< the process ends at once
};

/// Applies an effect to calls `first` (counted from 1) to `first + times - 1` of one kind.
struct Fault {
  Call call;
  std::uint64_t first;
  std::uint64_t times;
  Effect effect;
  int value;  ///< the errno, the signal, or microseconds
};

/// Counts for the process that started the program; both map the file.
struct Counts {
  std::array<std::atomic<std::uint64_t>, kCallNames.size()> calls;
  std::array<std::atomic<std::uint64_t>, 16>
      fired;  ///< how often each fault of the schedule was applied
};

/// Starts to count calls, when main() begins.
void begin_counting() noexcept;

/// Counts the next call of this kind and returns its fault. Delays, signals and kills have happened
/// before it returns.
[[nodiscard]] std::optional<Fault> next_call(Call call) noexcept;

/// Counts the next call of this kind. Returns whether it fails, and sets errno then.
[[nodiscard]] bool fails(Call call) noexcept;

/// Returns whether next_call() has counted a call of this kind.
[[nodiscard]] bool has_called(Call call) noexcept;

/// Returns whether an address belongs to the program itself, not to its shared libraries.
[[nodiscard]] bool is_of_program(const void* caller);

}  // namespace spillway::world
