#include "src/bench/paging/paging_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "src/bench/bench_file.h"
#include "src/bench/link/transfer.h"
#include "src/io/random.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway {
namespace {

constexpr std::size_t kStrideInPages = 8;
constexpr std::uint64_t kSeed = 7;

constexpr std::array kPatternNames{"stream", "stride", "reverse", "random"};
static_assert(kPatternNames.size() == static_cast<std::size_t>(TouchPattern::kRandom) + 1);

std::vector<std::size_t> strided(std::size_t pages) {
  std::vector<std::size_t> order;
  for (std::size_t first = 0; first < kStrideInPages; ++first) {
    for (std::size_t page = first; page < pages; page += kStrideInPages) order.push_back(page);
  }
  return order;
}

std::vector<std::size_t> drawn(std::size_t pages) {
  Random random{kSeed, pages};
  std::vector<std::size_t> order(pages);
  std::ranges::generate(order, [&] { return random.next() % pages; });
  return order;
}

constexpr std::array kPagingWayNames{"faults", "advised", "prefetched", "discarded"};
static_assert(kPagingWayNames.size() == static_cast<std::size_t>(PagingWay::kDiscarded) + 1);

constexpr std::size_t kMaxAhead = 8;

std::size_t distinct_pages(std::vector<std::size_t> order) {
  std::ranges::sort(order);
  return static_cast<std::size_t>(std::unique(order.begin(), order.end()) - order.begin());
}

void overwrite(um::Range page, std::uint64_t value) {
  auto* const words = reinterpret_cast<std::uint64_t*>(page.data());
  std::fill_n(words, page.size() / sizeof(std::uint64_t), value);
}

void update(um::Range page) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < page.size(); at += kLine) {
    ++*reinterpret_cast<std::uint64_t*>(&page[at]);
  }
}

void touch_page(um::Range page, PagingWay way, std::uint64_t pass) {
  if (overwrites(way)) {
    overwrite(page, pass);
  } else {
    update(page);
  }
}

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
        [&](RepetitionPhase phase) {
          ++pass;
          const Seconds taken = time_of([&] { touch_plainly(plain_pages, way, pass); });
          if (phase == RepetitionPhase::kCounted) plain.add(taken);
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

std::string to_string(TouchPattern pattern) {
  return kPatternNames.at(static_cast<std::size_t>(pattern));
}

std::optional<TouchPattern> find_pattern(const std::string& name) {
  return find_named<TouchPattern>(kPatternNames, name);
}

std::vector<std::size_t> touch_order(TouchPattern pattern, std::size_t pages) {
  if (pattern == TouchPattern::kStride) return strided(pages);
  if (pattern == TouchPattern::kRandom) return drawn(pages);
  std::vector<std::size_t> order(pages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (pattern == TouchPattern::kReverse) std::ranges::reverse(order);
  return order;
}

std::string to_string(PagingWay way) { return kPagingWayNames.at(static_cast<std::size_t>(way)); }

std::optional<PagingWay> find_paging_way(const std::string& name) {
  return find_named<PagingWay>(kPagingWayNames, name);
}

void touch_plainly(const TouchedPages& pages, PagingWay way, std::uint64_t pass) {
  for (std::size_t i = 0; i < pages.order.size(); ++i) touch_page(pages.at(i), way, pass);
}

PagingPass::PagingPass(um::ManagedSpace& space, TouchedPages pages, std::size_t near_pages,
                       PagingWay way)
    : space_{space},
      pages_{std::move(pages)},
      way_{way},
      ahead_{std::min(kMaxAhead, near_pages / 4)},
      sends_away_{distinct_pages(pages_.order) > near_pages} {
  if (way != PagingWay::kAdvised) return;
  const std::size_t kept = std::min(near_pages * 3 / 4, pages_.memory.size() / pages_.page.count());
  space_.hints().advise(pages_.memory.first(kept * pages_.page.count()), um::Advice::kPreferNear);
}

void PagingPass::run(std::uint64_t pass) {
  if (way_ == PagingWay::kPrefetched) {
    run_with_prefetches(pass);
  } else {
    if (way_ == PagingWay::kDiscarded) space_.hints().discard(pages_.memory);
    for (std::size_t i = 0; i < pages_.order.size(); ++i) touch(i, pass);
  }
  space_.hints().check();
}

void PagingPass::run_with_prefetches(std::uint64_t pass) {
  MoveTimer moves;
  const auto move = [&](std::size_t position, um::MemoryTier tier) {
    moves.start([&](um::Completion done) {
      space_.hints().prefetch(pages_.at(position), tier, std::move(done));
    });
  };
  const std::size_t count = pages_.order.size();
  for (std::size_t i = 0; i < std::min(ahead_, count); ++i) move(i, um::MemoryTier::kNear);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead_ < count) move(i + ahead_, um::MemoryTier::kNear);
    touch(i, pass);
    if (sends_away_ && !is_touched_soon(i)) move(i, um::MemoryTier::kFar);
  }
  static_cast<void>(moves.wait());
}

// Whether the page of this touch has been asked for again.
bool PagingPass::is_touched_soon(std::size_t position) const {
  const std::size_t end = std::min(position + ahead_ + 1, pages_.order.size());
  const auto next = std::span{pages_.order}.subspan(position + 1, end - position - 1);
  return std::ranges::find(next, pages_.order[position]) != next.end();
}

void PagingPass::touch(std::size_t position, std::uint64_t pass) {
  const um::Use use{.range = pages_.at(position),
                    .access = overwrites(way_) ? um::Access::kWrite : um::Access::kReadWrite};
  space_.hints().begin_use({&use, 1});
  touch_page(use.range, way_, pass);
  space_.hints().end_use({&use, 1});
}

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
