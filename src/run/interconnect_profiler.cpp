#include "src/run/interconnect_profiler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/ranks/collectives.h"
#include "src/ranks/tree_reduction.h"
#include "src/run/profiler.h"
#include "src/run/repeated_launch.h"
#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;
using um::Nanoseconds;

constexpr int kTransferTries = 8;
constexpr std::chrono::seconds kPatience{10};  // for all tries of a size
constexpr std::array<Bytes, 3> kSizes{Bytes{512}, Bytes{1U << 20U}, Bytes{25U << 20U}};

Nanoseconds slowest(Communicator& communicator, Nanoseconds own) {
  const std::vector<std::int64_t> times =
      all_gather_values(communicator, std::int64_t{own.count()});
  return Nanoseconds{*std::max_element(times.begin(), times.end())};
}

// An all-reduce of `size` bytes, in which each rank has one part.
class AllReduce {
 public:
  AllReduce(const RankMemory& between, Bytes size)
      : near_{between.near},
        reduction_{between.near, between.near.size()},
        scratch_{between.memory, reduction_.scratch_size(size / Bytes{sizeof(float)})},
        block_{between.memory, size},
        numbers_{reinterpret_cast<float*>(block_.data()), size / Bytes{sizeof(float)}} {
    near_.kernels().fill(numbers_, 0.0F);
    near_.finish();
  }

  void run() {
    const std::array<std::span<const float>, 1> nodes{numbers_};
    reduction_.all_reduce(nodes, numbers_, scratch_.bytes());
    near_.finish();
  }

 private:
  Communicator& near_;
  TreeReduction reduction_;
  um::Block scratch_;
  um::Block block_;
  std::span<float> numbers_;
};

Nanoseconds shortest_time(const RankMemory& between, Bytes size) {
  AllReduce all_reduce{between, size};
  const Nanoseconds longest = measuring_time(kPatience);
  Nanoseconds shortest = Nanoseconds::max();
  Nanoseconds all{0};  // the same on all ranks
  for (int i = 0; i < kTransferTries && all < longest; ++i) {
    wait_for_all(between.ranks);
    const auto start = std::chrono::steady_clock::now();
    all_reduce.run();
    const Nanoseconds time = slowest(between.ranks, std::chrono::steady_clock::now() - start);
    shortest = std::min(shortest, time);
    all += time;
  }
  return shortest;
}

}  // namespace

std::vector<AllReduceTime> time_all_reduces(const RankMemory& between) {
  std::vector<AllReduceTime> times;
  times.reserve(kSizes.size());
  for (const Bytes size : kSizes) {
    times.push_back({.size = size, .time = shortest_time(between, size)});
  }
  return times;
}

prefetch::Interconnect fitted_interconnect(std::size_t ranks,
                                           std::span<const AllReduceTime> times) {
  um::expects(ranks > 1 && times.size() > 1 && times.front().size < times.back().size,
              "times of two sizes, between at least two ranks");
  const auto count = static_cast<double>(ranks);
  const auto messages = 2 * (count - 1);
  const auto bytes = static_cast<double>((times.back().size - times.front().size).count());
  // Counts as a nanosecond longer if the large message is not slower than the small one.
  const Nanoseconds longer = std::max(Nanoseconds{1}, times.back().time - times.front().time);
  const double rate = messages / count * bytes / um::seconds(longer);
  const double of_bytes =
      messages / count * static_cast<double>(times.front().size.count()) / rate * 1e9;
  const double latency = (static_cast<double>(times.front().time.count()) - of_bytes) / messages;
  return {.ranks = static_cast<std::uint32_t>(ranks),
          .bandwidth = um::Bandwidth{rate},
          .latency = Nanoseconds{static_cast<std::int64_t>(std::max(0.0, latency))}};
}

void repeat_all_reduces(const RankMemory& between, Nanoseconds duration) {
  AllReduce all_reduce{between, kSizes.back()};
  const auto end = std::chrono::steady_clock::now() + duration;
  do all_reduce.run();
  while (any_rank(between.ranks, std::chrono::steady_clock::now() < end));
}

prefetch::Interconnect measure_interconnect(const RankMemory& between) {
  return fitted_interconnect(between.ranks.size(), time_all_reduces(between));
}

double compute_speed_while_exchanging(const RankMemory& between, const ExchangeLoad& load) {
  constexpr std::chrono::milliseconds kDuration{400};
  constexpr double kSlowest = 0.05;
  const std::optional<LoadTask> task = find_load(load.step, load.profile, load.limit);
  // If one rank has no load, no rank measures.
  if (any_rank(between.ranks, !task)) return 1;
  RepeatedLaunch launches{load.step, *task, *load.context.backend, load.context.device->memory(),
                          *load.context.compute};
  repeat_all_reduces(between, measuring_time(kDuration));
  const double own = std::clamp(launches.stop().value_or(1), kSlowest, 1.0);
  const std::vector<double> speeds = all_gather_values(between.ranks, own);
  return *std::ranges::min_element(speeds);
}

}  // namespace spillway
