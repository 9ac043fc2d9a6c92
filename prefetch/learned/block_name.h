#pragma once

#include <compare>
#include <cstdint>

namespace spillway::prefetch {

/// How learned prefetch knows a block from one iteration to the next: what an iteration allocates
/// by that iteration and its ordinal among the allocations there, what is older by the id that its
/// owner gave it.
struct BlockName {
  bool is_fresh = false;   ///< allocated in this iteration, or in one of the last few
  std::uint64_t id = 0;    ///< the ordinal, or the owner's id
  std::uint64_t born = 0;  ///< of a fresh one: the iteration that allocated it; in a replay plan,
                           ///< which one of its cycle
  friend constexpr auto operator<=>(const BlockName&, const BlockName&) = default;
};

}  // namespace spillway::prefetch
