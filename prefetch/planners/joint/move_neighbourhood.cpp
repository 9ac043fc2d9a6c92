#include "prefetch/planners/joint/move_neighbourhood.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "prefetch/planners/joint/stalls.h"

namespace spillway::prefetch {
namespace {

constexpr std::size_t kFew = 24;  // intervals that can all be tried one by one
constexpr std::uint32_t kOrders = 3;

Change preference_change(std::uint32_t interval, Preference preference) {
  return {.what = Change::What::kPreference,
          .index = interval,
          .value = static_cast<std::uint32_t>(preference)};
}

}  // namespace

MoveNeighbourhood::MoveNeighbourhood(const DecisionSpace& space, bool may_cut)
    : space_{space}, choices_{Preference::kInOrder, Preference::kFirst, Preference::kLast} {
  if (may_cut) choices_.push_back(Preference::kFirstWhole);
}

std::vector<CandidateEdit> MoveNeighbourhood::orders(const Decisions& from) const {
  CandidateEdit forget;
  for (std::uint32_t i = 0; i < from.preferences.size(); ++i) {
    if (from.preferences[i] != Preference::kInOrder) {
      forget.push_back(preference_change(i, Preference::kInOrder));
    }
  }
  const bool may_cut = choices_.back() == Preference::kFirstWhole;
  std::vector<CandidateEdit> edits;
  for (std::uint32_t whole = 0; whole < (may_cut ? 2 : 1); ++whole) {
    for (std::uint32_t order = 0; order < kOrders; ++order) {
      if (forget.empty() && order == static_cast<std::uint32_t>(from.order) &&
          (whole != 0) == from.whole_blocks) {
        continue;
      }
      edits.push_back(forget);
      edits.back().push_back({.what = Change::What::kCoverOrder, .value = order});
      edits.back().push_back({.what = Change::What::kWholeBlocks, .value = whole});
    }
  }
  return edits;
}

std::vector<std::uint32_t> MoveNeighbourhood::near_stalls(const Plan& plan,
                                                          const Timeline& timeline) const {
  constexpr std::size_t kStalls = 4;
  const std::vector<DecisionSpace::Interval>& intervals = space_.intervals();
  std::vector<std::uint32_t> found(intervals.size());
  std::iota(found.begin(), found.end(), 0U);
  if (found.size() <= kFew) return found;
  std::vector<DataId> moving;
  for (const Stall& stall : longest_stalls(plan, timeline, kStalls)) {
    const auto most = std::min(stall.moving.size(), kFew / kStalls);
    moving.insert(moving.end(), stall.moving.begin(),
                  stall.moving.begin() + static_cast<std::ptrdiff_t>(most));
  }
  std::ranges::sort(moving);
  std::erase_if(found, [&](std::uint32_t i) {
    return !std::ranges::binary_search(moving, intervals[i].data);
  });
  if (found.size() > kFew) found.resize(kFew);
  return found;
}

std::vector<CandidateEdit> MoveNeighbourhood::preferences(const Decisions& from, const Plan& plan,
                                                          const Timeline& timeline) const {
  std::vector<CandidateEdit> edits;
  for (const std::uint32_t i : near_stalls(plan, timeline)) {
    for (const Preference preference : choices_) {
      if (preference != from.preferences[i]) edits.push_back({preference_change(i, preference)});
    }
  }
  return edits;
}

CandidateEdit MoveNeighbourhood::random(const Decisions& from, std::size_t max,
                                        std::mt19937_64& generator) const {
  CandidateEdit edit;
  if (from.preferences.empty()) return edit;
  for (std::uint64_t left = generator() % max + 1; left > 0; --left) {
    const auto interval = static_cast<std::uint32_t>(generator() % from.preferences.size());
    edit.push_back(preference_change(interval, choices_[generator() % choices_.size()]));
  }
  if (generator() % 4 == 0) {
    edit.push_back({.what = Change::What::kCoverOrder,
                    .value = static_cast<std::uint32_t>(generator() % kOrders)});
  }
  return edit;
}

}  // namespace spillway::prefetch
