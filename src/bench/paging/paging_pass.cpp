#include "src/bench/paging/paging_pass.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "src/bench/link/move_timer.h"
#include "src/bench/name_of.h"

namespace spillway {
namespace {

constexpr std::array kWayNames{"faults", "advised", "prefetched", "discarded"};
static_assert(kWayNames.size() == static_cast<std::size_t>(PagingWay::kDiscarded) + 1);

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

}  // namespace

std::string to_string(PagingWay way) { return kWayNames.at(static_cast<std::size_t>(way)); }

std::optional<PagingWay> find_paging_way(const std::string& name) {
  return find_named<PagingWay>(kWayNames, name);
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

}  // namespace spillway
