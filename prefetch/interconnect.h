#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The interconnect over which the ranks of a data-parallel training exchange gradients.
struct Interconnect {
  std::uint32_t ranks = 2;
  um::Bandwidth bandwidth{1e9};  ///< sent by each rank; as much again is received
  um::Nanoseconds latency{0};    ///< of one message from a rank to the next
  /// True if messages also cross the link between near and far memory, as to a network card.
  bool shares_link = false;
  double compute_speed = 1;  ///< ExchangeTime::compute_speed
};

/// Bytes of the blocks of an exchange.
struct CollectiveBytes {
  um::Bytes all_reduced;  ///< summed, for all ranks
  um::Bytes one_way;      ///< only reduce-scattered or all-gathered

  [[nodiscard]] um::Bytes all() const { return all_reduced + one_way; }
};

[[nodiscard]] CollectiveBytes exchanged_bytes(const TaskGraph& graph,
                                              const GradientExchange& exchange);

/// Returns the bytes of all gradients that `graph` exchanges.
[[nodiscard]] um::Bytes gradient_bytes(const TaskGraph& graph);

/// Returns the time of a ring of N ranks for blocks of `size` on each, and the part of the link
/// that it takes. For a sum each rank sends a part of 1/N to the next one 2(N-1) times: N-1 times
/// until each part is a sum on one rank (reduce-scatter), N-1 times until all ranks have it
/// (all-gather).
[[nodiscard]] ExchangeTime collective_time(const CollectiveBytes& size,
                                           const Interconnect& interconnect,
                                           const LinkProfile& link);

/// Returns collective_time() of an all-reduce.
[[nodiscard]] inline ExchangeTime all_reduce_time(um::Bytes size, const Interconnect& interconnect,
                                                  const LinkProfile& link) {
  return collective_time({.all_reduced = size, .one_way = {}}, interconnect, link);
}

/// Returns the time of each exchange of `graph`: Profile::exchanges.
[[nodiscard]] std::vector<ExchangeTime> exchange_times(const TaskGraph& graph,
                                                       const Interconnect& interconnect,
                                                       const LinkProfile& link);

}  // namespace spillway::prefetch
