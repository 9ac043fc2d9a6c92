#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A lane of a virtual execution, which does one thing at a time.
struct VirtualLane {
  bool is_busy = false;
  double left = 0;  ///< nanoseconds of undisturbed work

  void start(um::Nanoseconds time) {
    is_busy = true;
    left = static_cast<double>(time.count());
  }
  /// Does `work` nanoseconds of the work; returns true when that ends it.
  bool pass(double work) {
    constexpr double kRounding = 1e-6;  // of a nanosecond
    if (!is_busy) return false;
    left -= work;
    if (left > kRounding) return false;
    is_busy = false;
    return true;
  }
};

/// Speeds of an exchange, and of moves and the task beside it, relative to each of them alone.
struct LinkShares {
  double exchange = 1;
  double offload = 1;
  double prefetch = 1;
  double compute = 1;
};

/// An exchange and a move in the same direction share the link fairly. If both demand more than its
/// bandwidth, each gets half, or one its whole demand and the other the rest. An exchange sends as
/// fast as it receives, so its slower direction counts. On a link that is not duplex both its
/// directions and the move share one.
[[nodiscard]] LinkShares link_shares(const ExchangeTime& exchange, bool is_duplex, bool offloads,
                                     bool prefetches);

/// The exchanges of a plan in a virtual execution, in sequence.
class ExchangeLane {
 public:
  /// Both arguments must outlive it.
  ExchangeLane(const Plan& plan, const Profile& profile) : plan_{plan}, profile_{profile} {}

  [[nodiscard]] bool is_busy() const { return lane_.is_busy; }
  [[nodiscard]] bool is_done() const { return ended_ == plan_.exchanges.size(); }
  /// Returns how many have ended: the index of the current or next exchange.
  [[nodiscard]] std::uint32_t ended() const { return ended_; }

  /// Begins the next exchange if `runs` ended runs suffice; returns false otherwise.
  bool start(std::uint32_t runs);
  /// Returns the current speeds; all 1 when no exchange is in flight.
  [[nodiscard]] LinkShares shares(bool offloads, bool prefetches) const;
  /// Returns nanoseconds until the exchange in flight ends, at this speed. Requires: is_busy().
  [[nodiscard]] double time_left(const LinkShares& shares) const {
    return lane_.left / shares.exchange;
  }
  /// Lets `time` nanoseconds pass at this speed; returns true when an exchange ends.
  bool pass(double time, const LinkShares& shares);

 private:
  const Plan& plan_;
  const Profile& profile_;
  std::uint32_t ended_ = 0;
  VirtualLane lane_;
};

}  // namespace spillway::prefetch
