#include "prefetch/simulate/exchange_lane.h"

#include <algorithm>

namespace spillway::prefetch {
namespace {

constexpr double kHalf = 0.5;

// Returns the relative speed of an exchange that takes `part` of a direction shared with a move.
double fair_speed(double part) { return part > kHalf ? kHalf / part : 1; }

}  // namespace

LinkShares link_shares(const ExchangeTime& exchange, bool is_duplex, bool offloads,
                       bool prefetches) {
  LinkShares shares{.compute = exchange.compute_speed};
  const double out = is_duplex ? exchange.outward : exchange.outward + exchange.inward;
  const double in = is_duplex ? exchange.inward : out;
  if (offloads) shares.exchange = std::min(shares.exchange, fair_speed(out));
  if (prefetches) shares.exchange = std::min(shares.exchange, fair_speed(in));
  if (offloads) shares.offload = 1 - shares.exchange * out;
  if (prefetches) shares.prefetch = 1 - shares.exchange * in;
  return shares;
}

bool ExchangeLane::start(std::uint32_t runs) {
  if (is_busy() || is_done() || plan_.exchanges[ended_].after_runs > runs) return false;
  lane_.start(profile_.exchanges.at(plan_.exchanges[ended_].exchange).alone);
  return true;
}

LinkShares ExchangeLane::shares(bool offloads, bool prefetches) const {
  if (!is_busy()) return {};
  return link_shares(profile_.exchanges[plan_.exchanges[ended_].exchange], profile_.link.is_duplex,
                     offloads, prefetches);
}

bool ExchangeLane::pass(double time, const LinkShares& shares) {
  if (!lane_.pass(time * shares.exchange)) return false;
  ++ended_;
  return true;
}

}  // namespace spillway::prefetch
