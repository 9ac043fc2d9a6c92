#pragma once

#include <cstdint>
#include <vector>

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// What the ranks of a data-parallel training exchange gradients over.
struct Interconnect {
  std::uint32_t ranks = 2;
  um::Bandwidth bandwidth{1e9};  ///< what each rank sends, and as much again that it receives
  um::Nanoseconds latency{0};    ///< of one message from a rank to the next
  /// Messages cross the link between near and far memory, too, as to a network card behind it.
  bool shares_link = false;
  double compute_speed = 1;  ///< ExchangeTime::compute_speed
};

/// Bytes of the blocks of an exchange.
struct CollectiveBytes {
  um::Bytes all_reduced;  ///< summed, for all ranks
  um::Bytes one_way;      ///< reduced and scattered, or gathered, only

  [[nodiscard]] um::Bytes all() const { return all_reduced + one_way; }
};

[[nodiscard]] CollectiveBytes exchanged_bytes(const TaskGraph& graph,
                                              const GradientExchange& exchange);

/// Bytes of all gradients that `graph` exchanges.
[[nodiscard]] um::Bytes gradient_bytes(const TaskGraph& graph);

/// How long a ring of N ranks takes for blocks of `size` on each, and what of the link that takes.
/// For a sum each rank sends a part of 1/N of them to the next one 2(N-1) times: N-1 times until
/// each part is a sum somewhere (reduce-scatter), as often until all ranks have it (all-gather).
[[nodiscard]] ExchangeTime collective_time(const CollectiveBytes& size,
                                           const Interconnect& interconnect,
                                           const LinkProfile& link);

/// The same of a sum for all ranks.
[[nodiscard]] inline ExchangeTime all_reduce_time(um::Bytes size, const Interconnect& interconnect,
                                                  const LinkProfile& link) {
  return collective_time({.all_reduced = size, .one_way = {}}, interconnect, link);
}

/// That of each exchange of `graph`: Profile::exchanges.
[[nodiscard]] std::vector<ExchangeTime> exchange_times(const TaskGraph& graph,
                                                       const Interconnect& interconnect,
                                                       const LinkProfile& link);

}  // namespace spillway::prefetch
