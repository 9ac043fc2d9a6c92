#include "prefetch/interconnect.h"

#include <algorithm>
#include <cmath>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

// Bytes a second that the link has room for, sent and received at the same time.
double link_rate(const LinkProfile& link) {
  const double out = link.offload.bytes_per_second();
  const double in = link.prefetch.bytes_per_second();
  return link.is_duplex ? std::min(out, in) : 1 / (1 / out + 1 / in);
}

}  // namespace

um::Bytes exchanged_bytes(const TaskGraph& graph, const GradientExchange& exchange) {
  um::Bytes size;
  for (const DataId id : exchange.gradients) size += graph[id].size;
  return size;
}

ExchangeTime all_reduce_time(um::Bytes size, const Interconnect& interconnect,
                             const LinkProfile& link) {
  um::expects(interconnect.ranks > 0, "at least one rank");
  constexpr double kLongest = 0x1p60;  // in nanoseconds
  const double ranks = interconnect.ranks;
  const double messages = 2 * (ranks - 1);
  const double sent = messages / ranks * static_cast<double>(size.count());
  const double own = interconnect.bandwidth.bytes_per_second();
  const double rate = interconnect.shares_link ? std::min(own, link_rate(link)) : own;
  const auto latency = static_cast<double>(interconnect.latency.count());
  const double time = std::ceil(messages * latency + sent / rate * 1e9);
  ExchangeTime result{.alone = um::Nanoseconds{static_cast<std::int64_t>(std::min(time, kLongest))},
                      .compute_speed = interconnect.compute_speed};
  if (!interconnect.shares_link || time <= 0) return result;
  result.outward = sent / (time * 1e-9) / link.offload.bytes_per_second();
  result.inward = sent / (time * 1e-9) / link.prefetch.bytes_per_second();
  return result;
}

std::vector<ExchangeTime> exchange_times(const TaskGraph& graph, const Interconnect& interconnect,
                                         const LinkProfile& link) {
  std::vector<ExchangeTime> times;
  times.reserve(graph.exchanges.size());
  for (const GradientExchange& exchange : graph.exchanges) {
    times.push_back(all_reduce_time(exchanged_bytes(graph, exchange), interconnect, link));
  }
  return times;
}

}  // namespace spillway::prefetch
