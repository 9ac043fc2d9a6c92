#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Pages of a block that are far in a part of an idle interval.
struct FarInterval : IdleInterval {
  um::Bytes offset;
  um::Bytes size;
  /// The first run that counts on their room: last < needed < next. Where nothing leaves it is 0,
  /// where nothing comes back and no run counts on the room it is the number of runs.
  Position needed = 0;
  /// It is far even where no run counts on its room: others may come back sooner.
  bool is_wanted = false;
  /// State that is far when the step begins: nothing leaves.
  bool starts_far = false;
  /// Leaves and comes back for its far copy: no run counts on its room.
  bool is_renewal = false;
};

/// `demand` without the pages that are far, each from `needed` up to, and without, `next`.
[[nodiscard]] std::vector<um::Bytes> without(std::span<const um::Bytes> demand,
                                             std::span<const FarInterval> far_intervals);

/// Where a block of state is between steps, see StateHome: its first `far` bytes are far, the
/// `copied` bytes after them near with a valid far copy, all others near.
struct HomeBytes {
  um::Bytes far;
  um::Bytes copied;

  [[nodiscard]] um::Bytes with_far_copy() const { return far + copied; }
};

/// Whether a block leaves in one of its idle intervals.
enum class Preference : std::uint8_t {
  kInOrder,     ///< when its turn comes
  kFirst,       ///< before all others
  kFirstWhole,  ///< before all others, and whole
  kAlways,      ///< the same, even where no run counts on its room
  kLast         ///< where nothing else is idle
};

/// A preference that is not kInOrder: of the `interval`-th idle interval of a block between two
/// uses, in order of time.
struct MovePreference {
  DataId data{};
  std::uint32_t interval = 0;
  Preference preference = Preference::kInOrder;
  friend bool operator==(const MovePreference&, const MovePreference&) = default;
};

/// Which of the blocks that are idle leaves first.
enum class CoverOrder : std::uint8_t {
  kLongestUnused,  ///< the one used longest ago, of equals the one that lasts longest
  kLatestNext,     ///< the one whose next use is latest (Belady)
  kLargest         ///< the largest, of equals the one used longest ago
};

/// How cover() may cut blocks, what it may count on, and which it takes.
struct CoverOptions {
  um::Bytes chunk;               ///< largest single far interval; a multiple of the page
  bool whole_blocks = false;     ///< a block leaves whole or not at all
  std::vector<HomeBytes> homes;  ///< by DataId, of state, in whole pages; empty: all is near
  /// What leaves without being copied goes before all others of the same preference.
  bool free_first = false;
  /// Of the pool: kept free for what comes early, as far as something leaves without being copied.
  um::Bytes kept_free;
  /// Of the pool: kept free at each run for what comes early, as far as something is idle.
  um::Bytes spare{};
  CoverOrder order = CoverOrder::kLongestUnused;
  std::vector<MovePreference> preferences{};  ///< at most one for each idle interval

  [[nodiscard]] HomeBytes home(DataId data) const {
    const auto index = static_cast<std::size_t>(data);
    return index < homes.size() ? homes[index] : HomeBytes{};
  }
};

/// Chooses what is far so that no run needs more than `pool` bytes for movable blocks: at each run
/// in order, whatever is missing is taken from the blocks that are idle, by `options.preferences`
/// and then in `options.order`. The one used longest ago first, in parts of blocks this is the
/// fractional greedy, which is optimal for offloading (Beaumont et al., section 4); with whole
/// blocks it is the capacity-based strategy of UM-Chainer, section 3.5.
///
/// `options.spare` takes away more than that, where it can: it is wanted, whoever counts on its
/// room.
///
/// What is far between steps by `options.homes` has left when the step ends; the room that it
/// leaves to runs counts as any other does. How it came near is not looked at.
///
/// `demand` as from demand(). Nothing when some run does not fit. The result is in order of
/// `needed`. Complexity: O((runs + idle intervals) log(idle intervals) + far intervals).
[[nodiscard]] std::optional<std::vector<FarInterval>> cover(const BlockSizes& block_sizes,
                                                            std::span<const um::Bytes> demand,
                                                            std::span<const Life> lives,
                                                            um::Bytes pool,
                                                            const CoverOptions& options);

}  // namespace spillway::prefetch
