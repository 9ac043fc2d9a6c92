#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// What does one thing at a time in a virtual execution.
struct VirtualLane {
  bool is_busy = false;
  double left = 0;  ///< nanoseconds of undisturbed work

  void start(um::Nanoseconds time) {
    is_busy = true;
    left = static_cast<double>(time.count());
  }
  /// So much of the work is done; true when that ends it.
  bool pass(double work) {
    constexpr double kRounding = 1e-6;  // of a nanosecond
    if (!is_busy) return false;
    left -= work;
    if (left > kRounding) return false;
    is_busy = false;
    return true;
  }
};

/// How fast an exchange, and the moves and the task beside it go, relative to each of them alone.
struct LinkShares {
  double exchange = 1;
  double offload = 1;
  double prefetch = 1;
  double compute = 1;
};

/// An exchange and a move in the same direction share the link fairly: what both ask for together
/// beyond its bandwidth, each of them gets half of it, or one all that it asks for and the other
/// the rest. An exchange sends as fast as it receives, so the slower direction counts. On a link
/// that is not duplex its two directions and the move share one.
[[nodiscard]] LinkShares link_shares(const ExchangeTime& exchange, bool is_duplex, bool offloads,
                                     bool prefetches);

/// The exchanges of a plan in a virtual execution, one after the other.
class ExchangeLane {
 public:
  /// Both must outlive it.
  ExchangeLane(const Plan& plan, const Profile& profile) : plan_{plan}, profile_{profile} {}

  [[nodiscard]] bool is_busy() const { return lane_.is_busy; }
  [[nodiscard]] bool is_done() const { return ended_ == plan_.exchanges.size(); }
  /// How many have ended; that one is under way, or next.
  [[nodiscard]] std::uint32_t ended() const { return ended_; }

  /// Begins the next one if so many `runs` have ended that it may; false where it may not.
  bool start(std::uint32_t runs);
  /// How fast everything goes now; all 1 when no exchange is under way.
  [[nodiscard]] LinkShares shares(bool offloads, bool prefetches) const;
  /// Nanoseconds until the one under way has ended, at this speed. Requires: is_busy().
  [[nodiscard]] double time_left(const LinkShares& shares) const {
    return lane_.left / shares.exchange;
  }
  /// So many nanoseconds pass at this speed; true when an exchange ends.
  bool pass(double time, const LinkShares& shares);

 private:
  const Plan& plan_;
  const Profile& profile_;
  std::uint32_t ended_ = 0;
  VirtualLane lane_;
};

}  // namespace spillway::prefetch
