#include "prefetch/planners/joint/move_neighbourhood.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "prefetch/planners/joint/neighbourhood.h"

namespace spillway::prefetch {
namespace {

constexpr std::size_t kFew = 24;  // number of intervals up to which all are tried
constexpr std::uint32_t kOrders = 3;

Change preference_change(std::uint32_t interval, Preference preference) {
  return {.what = Change::What::kPreference,
          .index = interval,
          .value = static_cast<std::uint32_t>(preference)};
}

}  // namespace

MoveNeighbourhood::MoveNeighbourhood(const DecisionSpace& space, const Problem& problem)
    : space_{space},
      may_cut_{!problem.whole_blocks},
      is_duplex_{problem.profile.link.is_duplex},
      alike_{alike_intervals(space, problem)},
      choices_{Preference::kInOrder, Preference::kFirst, Preference::kLast, Preference::kAlways} {
  if (may_cut_) choices_.push_back(Preference::kFirstWhole);
}

std::vector<CandidateEdit> MoveNeighbourhood::orders(const Decisions& from) const {
  CandidateEdit forget;
  for (std::uint32_t i = 0; i < from.preferences.size(); ++i) {
    if (from.preferences[i] != Preference::kInOrder) {
      forget.push_back(preference_change(i, Preference::kInOrder));
    }
  }
  std::vector<CandidateEdit> edits;
  for (std::uint32_t choice = 0; choice < kOrders << 3U; ++choice) {
    const std::uint32_t order = choice >> 3U;
    const std::uint32_t whole = choice >> 2U & 1U;
    const std::uint32_t eager = choice >> 1U & 1U;
    const std::uint32_t prefetches_first = choice & 1U;
    if ((whole != 0 && !may_cut_) || (prefetches_first != 0 && is_duplex_)) continue;
    CandidateEdit edit = forget;
    edit.push_back({.what = Change::What::kCoverOrder, .value = order});
    edit.push_back({.what = Change::What::kWholeBlocks, .value = whole});
    edit.push_back({.what = Change::What::kEager, .value = eager});
    edit.push_back({.what = Change::What::kPrefetchesFirst, .value = prefetches_first});
    edits.push_back(std::move(edit));
  }
  return edits;
}

std::vector<CandidateEdit> MoveNeighbourhood::looking_ahead(const Decisions& from) const {
  constexpr std::array<std::uint32_t, 5> kSpares = {0, 1, 2, 4, 8};
  std::vector<CandidateEdit> edits = parts(from);
  for (const std::uint32_t spare : kSpares) {
    if (spare != from.spare) edits.push_back({{.what = Change::What::kSpare, .value = spare}});
  }
  return edits;
}

std::vector<CandidateEdit> MoveNeighbourhood::parts(const Decisions& from) const {
  if (!may_cut_) return {};
  const std::uint32_t other = from.move_order.in_parts ? 0 : 1;
  return {{{.what = Change::What::kInParts, .value = other}}};
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

std::vector<CandidateEdit> MoveNeighbourhood::alike(const Decisions& from) const {
  std::vector<CandidateEdit> edits;
  for (const Group& group : alike_) {
    for (const Preference preference : choices_) {
      CandidateEdit edit;
      for (const std::uint32_t i : group) {
        if (preference != from.preferences[i]) edit.push_back(preference_change(i, preference));
      }
      if (!edit.empty()) edits.push_back(std::move(edit));
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
    edit.push_back(
        {.what = Change::What::kEager, .value = static_cast<std::uint32_t>(generator() % 2)});
    if (!is_duplex_) {
      edit.push_back({.what = Change::What::kPrefetchesFirst,
                      .value = static_cast<std::uint32_t>(generator() % 2)});
    }
  }
  return edit;
}

}  // namespace spillway::prefetch
