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
  /// The first run that counts on their room: last < needed < next. It is 0 without an offload. It
  /// is the number of runs if no run counts on the room and no prefetch follows.
  Position needed = 0;
  /// Far even if no run counts on its room: other blocks may return earlier.
  bool is_wanted = false;
  /// State that is far when the step begins, without an offload.
  bool starts_far = false;
  /// Leaves and returns only to renew its far copy: no run counts on its room.
  bool is_renewal = false;
};

/// Returns `demand` minus the pages that are far, each in [needed, next).
[[nodiscard]] std::vector<um::Bytes> without(std::span<const um::Bytes> demand,
                                             std::span<const FarInterval> far_intervals);

/// The home of a block of state between steps (see StateHome): its first `far` bytes are far, the
/// next `copied` bytes near with a valid far copy, all others near.
struct HomeBytes {
  um::Bytes far;
  um::Bytes copied;

  [[nodiscard]] um::Bytes with_far_copy() const { return far + copied; }
};

/// Whether a block leaves in an idle interval.
enum class Preference : std::uint8_t {
  kInOrder,     ///< in the usual order
  kFirst,       ///< before all others
  kFirstWhole,  ///< before all others, and the whole block
  kAlways,      ///< as kFirstWhole, even if no run counts on its room
  kLast         ///< only if no other block is idle
};

/// A preference other than kInOrder for the `interval`-th idle interval of a block between two
/// uses.
struct MovePreference {
  DataId data{};
  std::uint32_t interval = 0;
  Preference preference = Preference::kInOrder;
  friend bool operator==(const MovePreference&, const MovePreference&) = default;
};

/// Which idle block leaves first.
enum class CoverOrder : std::uint8_t {
  kLongestUnused,  ///< least recently used; among equals the longest interval
  kLatestNext,     ///< the latest next use (Belady)
  kLargest         ///< the largest; among equals the least recently used
};

/// Options of cover(): how to cut blocks, which room to count on, which blocks to take.
struct CoverOptions {
  um::Bytes chunk;               ///< largest single far interval; a multiple of the page
  bool whole_blocks = false;     ///< a block leaves completely or not at all
  std::vector<HomeBytes> homes;  ///< state by DataId, in whole pages; empty: all near
  /// Among equal preferences, blocks that leave without a copy go first.
  bool free_first = false;
  /// Part of the pool that is kept free for early prefetches, as far as blocks leave without a
  /// copy.
  um::Bytes kept_free;
  /// Part of the pool that is kept free at each run for early prefetches, as far as blocks are
  /// idle.
  um::Bytes spare{};
  CoverOrder order = CoverOrder::kLongestUnused;
  std::vector<MovePreference> preferences{};  ///< at most one per idle interval

  [[nodiscard]] HomeBytes home(DataId data) const {
    const auto index = static_cast<std::size_t>(data);
    return index < homes.size() ? homes[index] : HomeBytes{};
  }
};

/// Chooses far intervals so that no run needs more than `pool` bytes for movable blocks. At each
/// run in order, missing bytes are taken from idle blocks by `options.preferences`, then in
/// `options.order`. Taking parts of blocks, least recently used first, is the fractional greedy,
/// which is optimal for offloading (Beaumont et al., section 4). Taking whole blocks is the
/// capacity-based strategy of UM-Chainer, section 3.5.
///
/// `options.spare` makes more blocks far if possible: these intervals are wanted even if no run
/// counts on their room.
///
/// State that `options.homes` puts far has left when the step ends; its room counts as any other.
/// How it became near is not considered.
///
/// `demand` as from demand(). Returns nullopt when some run does not fit. The result is in order of
/// `needed`. Complexity: O((runs + idle intervals) log(idle intervals) + far intervals).
[[nodiscard]] std::optional<std::vector<FarInterval>> cover(const BlockSizes& block_sizes,
                                                            std::span<const um::Bytes> demand,
                                                            std::span<const Life> lives,
                                                            um::Bytes pool,
                                                            const CoverOptions& options);

}  // namespace spillway::prefetch
