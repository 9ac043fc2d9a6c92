#include "prefetch/interconnect.h"

#include <algorithm>
#include <cmath>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

// Returns the link's bytes per second when sending and receiving at the same time.
double link_rate(const LinkProfile& link) {
  const double out = link.offload.bytes_per_second();
  const double in = link.prefetch.bytes_per_second();
  return link.is_duplex ? std::min(out, in) : 1 / (1 / out + 1 / in);
}

}  // namespace

CollectiveBytes exchanged_bytes(const TaskGraph& graph, const GradientExchange& exchange) {
  const auto sum = [&](const std::vector<DataId>& blocks) {
    um::Bytes size;
    for (const DataId id : blocks) size += graph[id].size;
    return size;
  };
  const um::Bytes one_way = sum(exchange.divided);
  return {.all_reduced = sum(exchange.blocks) - one_way, .one_way = one_way};
}

um::Bytes gradient_bytes(const TaskGraph& graph) {
  um::Bytes size;
  for (const GradientExchange& exchange : graph.exchanges) {
    if (exchange.is_of_gradients()) size += exchanged_bytes(graph, exchange).all();
  }
  return size;
}

ExchangeTime collective_time(const CollectiveBytes& size, const Interconnect& interconnect,
                             const LinkProfile& link) {
  um::expects(interconnect.ranks > 0, "at least one rank");
  constexpr double kLongest = 0x1p60;  // in nanoseconds
  const double ranks = interconnect.ranks;
  const double messages = ranks - 1;  // of a reduce-scatter, or of an all-gather
  const auto times = [](um::Bytes bytes) { return bytes > um::Bytes{} ? 1.0 : 0.0; };
  const double sent = messages / ranks *
                      (2 * static_cast<double>(size.all_reduced.count()) +
                       static_cast<double>(size.one_way.count()));
  const double own = interconnect.bandwidth.bytes_per_second();
  const double rate = interconnect.shares_link ? std::min(own, link_rate(link)) : own;
  const double latency = messages * (2 * times(size.all_reduced) + times(size.one_way)) *
                         static_cast<double>(interconnect.latency.count());
  const double time = std::ceil(latency + sent / rate * 1e9);
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
    times.push_back(collective_time(exchanged_bytes(graph, exchange), interconnect, link));
  }
  return times;
}

}  // namespace spillway::prefetch
