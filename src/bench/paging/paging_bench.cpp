#include "src/bench/paging/paging_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/bench/bench_file.h"
#include "src/bench/link/move_timer.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway {
namespace {

// What is compared at the end: enough to see a lost page, too few to take time.
constexpr std::size_t kComparedPages = 16;

// One managed space and as much plain memory, touched in turns.
class PagingRace {
 public:
  PagingRace(um::Device& device, const PagingBenchOptions& options, double near_times)
      : near_times_{near_times},
        repetition_{options.repetition},
        options_{space_options(options, near_times)},
        ledger_{options_.near},
        space_{device.make_managed_space(options_, ledger_)},
        plain_{device.memory(), options_.size} {
    device.prepare_kernel_thread();
  }

  [[nodiscard]] PagingRow measure(TouchPattern pattern, PagingWay way,
                                  const std::stop_token& stop) {
    const TouchedPages plain_pages = pages_of(plain_.bytes(), pattern);
    const TouchedPages managed_pages = pages_of(space_->slab(), pattern);
    clear();
    PagingPass passes{*space_, managed_pages, options_.near / options_.page, way};
    Samples plain{repetition_.settling};
    um::Counters counters;
    std::uint64_t pass = 0;
    const TimingSummary time = spillway::measure(
        [&](Phase phase) {
          ++pass;
          const Seconds taken = time_of([&] { touch_plainly(plain_pages, way, pass); });
          if (phase == Phase::kCounted) plain.add(taken);
          const um::Counters before = space_->counters();
          const Seconds paged = time_of([&] { passes.run(pass); });
          counters = space_->counters() - before;
          return paged;
        },
        repetition_, stop);
    expect_same_content(plain_pages, managed_pages);
    return {.pattern = pattern,
            .way = way,
            .near_times = near_times_,
            .size = options_.size,
            .near = options_.near,
            .time = time,
            .plain = plain.timing(),
            .counters = counters};
  }

 private:
  static um::ManagedOptions space_options(const PagingBenchOptions& options, double near_times) {
    um::ManagedOptions space = options.space;
    space.near = options.near;
    space.size = paged_size(options.near, near_times, space.page);
    return space;
  }

  template <typename Work>
  static Seconds time_of(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::steady_clock::now() - begin;
  }

  [[nodiscard]] TouchedPages pages_of(um::Range memory, TouchPattern pattern) const {
    return {.memory = memory,
            .page = options_.page,
            .order = touch_order(pattern, memory.size() / options_.page.count())};
  }

  // Takes back advice, zeroes both memories, and leaves all of the managed one far: the system
  // gives far memory its pages when they are first written, which takes longer than any fault.
  void clear() {
    const um::Range slab = space_->slab();
    space_->hints().advise(slab, um::Advice::kNone);
    for (std::size_t at = 0; at < slab.size(); at += options_.page.count()) {
      const um::Use use{.range = slab.subspan(at, options_.page.count()),
                        .access = um::Access::kWrite};
      space_->hints().begin_use({&use, 1});
      std::ranges::fill(use.range, std::byte{0});
      space_->hints().end_use({&use, 1});
    }
    MoveTimer timer;
    timer.start([&](um::Completion done) {
      space_->hints().prefetch(slab, um::MemoryTier::kFar, std::move(done));
    });
    static_cast<void>(timer.wait());
    std::ranges::fill(plain_.bytes(), std::byte{0});
  }

  // Of the last pages of a pass, which even a pass that overwrites has not left indeterminate.
  void expect_same_content(const TouchedPages& plain, const TouchedPages& managed) {
    const std::size_t count = plain.order.size();
    for (std::size_t i = count - std::min(count, kComparedPages); i < count; ++i) {
      const um::Use use{.range = managed.at(i), .access = um::Access::kRead};
      space_->hints().begin_use({&use, 1});
      const bool is_same = std::ranges::equal(use.range, plain.at(i));
      space_->hints().end_use({&use, 1});
      um::expects(is_same, "managed memory holds what was written to it");
    }
  }

  double near_times_;
  Repetition repetition_;
  um::ManagedOptions options_;
  um::Ledger ledger_;
  std::unique_ptr<um::ManagedSpace> space_;
  um::Block plain_;
};

}  // namespace

um::Bytes paged_size(um::Bytes near, double near_times, um::Bytes page) {
  const double bytes = static_cast<double>(near.count()) * near_times;
  return um::round_down(um::Bytes{static_cast<std::uint64_t>(std::llround(bytes))}, page);
}

nlohmann::json to_json(const PagingRow& row) {
  return {{"pattern", to_string(row.pattern)},
          {"way", to_string(row.way)},
          {"near_times", row.near_times},
          {"bytes", row.size.count()},
          {"near_bytes", row.near.count()},
          {"seconds", to_json(row.time)},
          {"plain_seconds", to_json(row.plain)},
          {"ratio", row.ratio()},
          {"faults", row.counters.faults},
          {"evictions", row.counters.evictions},
          {"bytes_in", row.counters.bytes_prefetched.count()},
          {"bytes_out", row.counters.bytes_offloaded.count()}};
}

PagingRow read_paging_row(const prefetch::JsonView& row) {
  um::Counters counters;
  counters.faults = count_or_zero(row, "faults");
  counters.evictions = count_or_zero(row, "evictions");
  counters.bytes_prefetched = um::Bytes{count_or_zero(row, "bytes_in")};
  counters.bytes_offloaded = um::Bytes{count_or_zero(row, "bytes_out")};
  return {.pattern = NameOf<TouchPattern>{row.at("pattern").string()},
          .way = NameOf<PagingWay>{row.at("way").string()},
          .near_times = row.at("near_times").positive_number(),
          .size = um::Bytes{row.at("bytes").integer()},
          .near = um::Bytes{row.at("near_bytes").integer()},
          .time = read_timing(row.at("seconds")),
          .plain = read_timing(row.at("plain_seconds")),
          .counters = counters};
}

void bench_paging(um::Device& device, const PagingBenchOptions& options,
                  const PagingListener& listener, const std::stop_token& stop) {
  um::expects(device.evicts(), "only a device that evicts has anything to measure");
  const std::size_t rows =
      options.near_times.size() * options.patterns.size() * options.ways.size();
  std::size_t reached = 0;
  for (const double near_times : options.near_times) {
    PagingRace race{device, options, near_times};
    for (const TouchPattern pattern : options.patterns) {
      for (const PagingWay way : options.ways) {
        listener.on_progress(static_cast<double>(reached++) / static_cast<double>(rows),
                             to_string(pattern) + " " + to_string(way));
        listener.on_row(race.measure(pattern, way, stop));
      }
    }
  }
}

}  // namespace spillway
