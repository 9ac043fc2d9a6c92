#include "prefetch/planners/joint/neighbourhood.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;

// Returns the values of `groups` with at least two members, in order of their first member.
template <typename Key>
std::vector<Group> repeated(std::map<Key, Group> groups) {
  std::vector<Group> result;
  for (auto& [key, group] : groups) {
    if (group.size() > 1) result.push_back(std::move(group));
  }
  std::ranges::sort(result, {}, [](const Group& group) { return group.front(); });
  return result;
}

// Returns the magnitudes of the times of a task and of its neighbours.
std::vector<int> amid(const Problem& problem, std::size_t task) {
  constexpr std::size_t kBeside = 2;  // on each side
  const std::size_t first = task - std::min(task, kBeside);
  const std::size_t end = std::min(problem.graph.tasks.size(), task + kBeside + 1);
  std::vector<int> result;
  for (std::size_t t = first; t < end; ++t) {
    result.push_back(magnitude(static_cast<double>(problem.profile(TaskId(t), 0).count())));
  }
  return result;
}

// Adds the bytes of moves in flight during `when`, and of moves directly before them: the queue's
// uninterrupted work up to the stall.
void add_moving(const std::vector<Move>& moves, const std::vector<Interval>& intervals,
                const Interval& when, std::map<DataId, um::Bytes>& bytes) {
  // Moves of one queue come one after another.
  const auto first = static_cast<std::size_t>(
      std::ranges::upper_bound(intervals, when.begin, {}, &Interval::end) - intervals.begin());
  std::size_t end = first;
  while (end < moves.size() && intervals[end].begin < when.end) ++end;
  if (end == first) return;
  std::size_t begin = first;
  while (begin > 0 && intervals[begin - 1].end >= intervals[begin].begin) --begin;
  for (std::size_t i = begin; i < end; ++i) bytes[moves[i].data] += moves[i].size;
}

constexpr std::uint32_t kNoIndex = ~0U;

// Splits `all` into pieces of `length`; the last one may be shorter.
std::vector<std::vector<std::uint32_t>> pieces(const std::vector<std::uint32_t>& all,
                                               std::size_t length) {
  std::vector<std::vector<std::uint32_t>> result;
  for (std::size_t i = 0; i < all.size(); i += length) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + length));
    result.emplace_back(first, last);
  }
  return result;
}

std::vector<std::uint32_t> first(const std::vector<std::uint32_t>& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), count))};
}

void add_unless_empty(CandidateEdit edit, std::vector<CandidateEdit>& edits) {
  if (!edit.empty() && std::ranges::find(edits, edit) == edits.end()) {
    edits.push_back(std::move(edit));
  }
}

// Sorts the cheapest first.
void sort_by_price(std::vector<std::uint32_t>& blocks, std::span<const double> prices) {
  std::ranges::stable_sort(blocks, {}, [&](std::uint32_t i) { return prices[i]; });
}

// Returns the numbers below `count` in an order in which every prefix is evenly spread: with
// reversed bits (van der Corput).
std::vector<std::size_t> spread(std::size_t count) {
  const auto bits = static_cast<int>(std::bit_width(count));
  std::vector<std::size_t> order;
  order.reserve(count);
  for (std::size_t i = 0; i < std::size_t{1} << bits; ++i) {
    std::size_t reversed = 0;
    for (int bit = 0; bit < bits; ++bit) reversed |= (i >> bit & 1U) << (bits - 1 - bit);
    if (reversed < count) order.push_back(reversed);
  }
  return order;
}

Change policy_change(std::uint32_t index, RetentionPolicy policy) {
  return {
      .what = Change::What::kPolicy, .index = index, .value = static_cast<std::uint32_t>(policy)};
}

constexpr std::size_t kFew = 24;  // number of intervals up to which all are tried
constexpr std::uint32_t kOrders = 3;

Change preference_change(std::uint32_t interval, Preference preference) {
  return {.what = Change::What::kPreference,
          .index = interval,
          .value = static_cast<std::uint32_t>(preference)};
}

}  // namespace

int magnitude(double value) {
  constexpr int kClasses = 8;  // per power of two
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // in [1/2, 1)
  return kClasses * exponent + static_cast<int>(2 * kClasses * (mantissa - 0.5));
}

std::vector<Group> alike_blocks(const DecisionSpace& space, const Problem& problem) {
  std::vector<std::size_t> made(problem.graph.data.size());  // by block: the last forward task
  for (std::size_t t = 0; t < problem.graph.tasks.size(); ++t) {
    const Task& task = problem.graph.tasks[t];
    if (task.phase != Phase::kForward) continue;
    for (const DataId id : task.writes) made[static_cast<std::size_t>(id)] = t;
  }
  std::map<std::pair<um::Bytes, std::vector<int>>, Group> groups;
  const std::vector<Recomputable>& blocks = space.droppable();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    groups[{blocks[i].size, amid(problem, made[static_cast<std::size_t>(blocks[i].data)])}]
        .push_back(static_cast<std::uint32_t>(i));
  }
  return repeated(std::move(groups));
}

std::vector<Group> alike_intervals(const DecisionSpace& space, const Problem& problem) {
  std::map<std::pair<um::Bytes, std::vector<int>>, Group> groups;
  const std::vector<DecisionSpace::Interval>& intervals = space.intervals();
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const DecisionSpace::Interval& each = intervals[i];
    std::vector<int> key = amid(problem, each.last);
    std::ranges::copy(amid(problem, each.next), std::back_inserter(key));
    groups[{problem.graph[each.data].size, std::move(key)}].push_back(
        static_cast<std::uint32_t>(i));
  }
  return repeated(std::move(groups));
}

std::vector<Stall> longest_stalls(const Plan& plan, const Timeline& timeline, std::size_t count) {
  std::vector<Stall> stalls;
  Nanoseconds free{0};
  for (Position p = 0; p < plan.runs.size(); ++p) {
    if (timeline.runs[p].begin > free) {
      stalls.push_back({.before = p, .length = timeline.runs[p].begin - free, .moving = {}});
    }
    free = timeline.runs[p].end;
  }
  std::ranges::stable_sort(stalls, std::ranges::greater{}, &Stall::length);
  if (stalls.size() > count) stalls.resize(count);
  for (Stall& stall : stalls) {
    const Nanoseconds end = timeline.runs[stall.before].begin;
    const Interval when{.begin = end - stall.length, .end = end};
    std::map<DataId, um::Bytes> bytes;
    add_moving(plan.offloads, timeline.offloads, when, bytes);
    add_moving(plan.prefetches, timeline.prefetches, when, bytes);
    std::vector<std::pair<um::Bytes, DataId>> by_size;
    by_size.reserve(bytes.size());
    for (const auto& [data, size] : bytes) by_size.emplace_back(size, data);
    std::ranges::stable_sort(by_size, std::ranges::greater{}, &std::pair<um::Bytes, DataId>::first);
    for (const auto& [size, data] : by_size) stall.moving.push_back(data);
  }
  return stalls;
}

Neighbourhood::Neighbourhood(const DecisionSpace& space, const Problem& problem)
    : space_{space}, alike_{alike_blocks(space, problem)} {
  const std::vector<Recomputable>& blocks = space.droppable();
  by_cost_.resize(blocks.size());
  std::iota(by_cost_.begin(), by_cost_.end(), 0U);
  by_position_ = by_cost_;
  std::ranges::sort(by_position_, {}, [&](std::uint32_t i) { return blocks[i].data; });
  for (const std::uint32_t i : by_cost_) {
    const auto data = static_cast<std::size_t>(blocks[i].data);
    if (index_of_.size() <= data) index_of_.resize(data + 1, kNoIndex);
    index_of_[data] = i;
  }
}

CandidateEdit Neighbourhood::set_policy(const Decisions& from,
                                        const std::vector<std::uint32_t>& blocks,
                                        RetentionPolicy policy) const {
  CandidateEdit edit;
  for (const std::uint32_t i : blocks) {
    if (from.policies[i] != policy) edit.push_back(policy_change(i, policy));
  }
  return edit;
}

CandidateEdit Neighbourhood::drop_cheapest(const Selection& selection) const {
  const std::vector<Recomputable>& blocks = space_.droppable();
  std::map<int, std::vector<std::uint32_t>> by_price;
  for (std::size_t place = 0; place < by_position_.size(); ++place) {
    const Recomputable& block = blocks[by_position_[place]];
    const double late = static_cast<double>(place) / static_cast<double>(by_position_.size());
    const double price = static_cast<double>(block.cost.count() + 1) /
                         static_cast<double>(block.size.count()) * (1 + selection.tilt * late);
    by_price[magnitude(price)].push_back(by_position_[place]);
  }
  CandidateEdit edit;
  std::size_t dropped = 0;
  for (const auto& [price, alike] : by_price) {
    const std::size_t kept = selection.keep_every > 0 ? alike.size() / selection.keep_every : 0;
    const std::vector<std::size_t> order = spread(alike.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool drop = dropped < selection.count && i + kept < order.size();
      edit.push_back(
          policy_change(alike[order[i]], drop ? RetentionPolicy::kDrop : RetentionPolicy::kKeep));
      if (drop) ++dropped;
    }
  }
  return edit;
}

std::vector<CandidateEdit> Neighbourhood::ranges(const Decisions& from, BlockOrder order,
                                                 std::size_t length) const {
  std::vector<CandidateEdit> edits;
  for (const auto& piece : pieces(order == BlockOrder::kByCost ? by_cost_ : by_position_, length))
    add_policies(from, piece, edits);
  return edits;
}

std::vector<CandidateEdit> Neighbourhood::alike(const Decisions& from) const {
  std::vector<CandidateEdit> edits;
  for (const Group& group : alike_) add_policies(from, group, edits);
  return edits;
}

void Neighbourhood::add_policies(const Decisions& from, const Group& blocks,
                                 std::vector<CandidateEdit>& edits) const {
  for (const RetentionPolicy policy :
       {RetentionPolicy::kDrop, RetentionPolicy::kDropPerUse, RetentionPolicy::kKeep}) {
    add_unless_empty(set_policy(from, blocks, policy), edits);
  }
}

std::vector<CandidateEdit> Neighbourhood::algorithm_ranges(const Decisions& from,
                                                           std::size_t length) const {
  std::vector<std::uint32_t> tasks;
  for (const TaskId id : space_.choosable()) tasks.push_back(static_cast<std::uint32_t>(id));
  std::vector<CandidateEdit> edits;
  for (const auto& piece : pieces(tasks, length)) {
    CandidateEdit frugal;
    CandidateEdit fastest;
    for (const std::uint32_t task : piece) {
      const Change::What what = Change::What::kAlgorithm;
      const std::uint32_t fast = space_.start().algorithms[task];
      if (from.algorithms[task] != 0) frugal.push_back({.what = what, .index = task, .value = 0});
      if (from.algorithms[task] != fast) {
        fastest.push_back({.what = what, .index = task, .value = fast});
      }
    }
    add_unless_empty(std::move(frugal), edits);
    add_unless_empty(std::move(fastest), edits);
  }
  return edits;
}

std::vector<std::uint32_t> Neighbourhood::droppable_among(const std::vector<DataId>& blocks) const {
  std::vector<std::uint32_t> found;
  for (const DataId id : blocks) {
    const auto data = static_cast<std::size_t>(id);
    if (data < index_of_.size() && index_of_[data] != kNoIndex) found.push_back(index_of_[data]);
  }
  return found;
}

std::vector<CandidateEdit> Neighbourhood::against_stalls(const Decisions& from, const Plan& plan,
                                                         const Timeline& timeline,
                                                         std::span<const double> prices) const {
  constexpr std::size_t kStalls = 10;
  std::vector<CandidateEdit> edits;
  for (const Stall& stall : longest_stalls(plan, timeline, kStalls)) {
    const TaskRun& run = plan.runs[stall.before];
    if (run.algorithm != 0) {
      add_unless_empty({{.what = Change::What::kAlgorithm,
                         .index = static_cast<std::uint32_t>(run.task),
                         .value = 0}},
                       edits);
    }
    std::vector<std::uint32_t> blocks = droppable_among(stall.moving);
    sort_by_price(blocks, prices);
    for (std::size_t count = 1; count < 2 * blocks.size(); count *= 2) {
      const auto cheapest = first(blocks, count);
      add_unless_empty(set_policy(from, cheapest, RetentionPolicy::kDrop), edits);
      add_unless_empty(set_policy(from, cheapest, RetentionPolicy::kDropPerUse), edits);
    }
    std::ranges::reverse(blocks);
    for (const std::uint32_t block : first(blocks, 2)) {
      add_unless_empty(set_policy(from, {block}, RetentionPolicy::kDrop), edits);
    }
  }
  return edits;
}

std::vector<CandidateEdit> Neighbourhood::against_cost(const Decisions& from, const Plan& plan,
                                                       std::span<const double> prices) const {
  constexpr std::size_t kSingle = 20;
  constexpr std::size_t kExchanged = 8;
  std::vector<std::uint32_t> dropped;
  for (const std::uint32_t i : by_cost_) {
    if (from.policies[i] != RetentionPolicy::kKeep) dropped.push_back(i);
  }
  sort_by_price(dropped, prices);
  std::ranges::reverse(dropped);  // the most expensive first
  std::vector<DataId> moving;
  for (const Move& move : plan.offloads) moving.push_back(move.data);
  std::vector<std::uint32_t> moved = droppable_among(moving);
  std::ranges::sort(moved);
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  sort_by_price(moved, prices);

  std::vector<CandidateEdit> edits;
  for (std::size_t count = 2; count < 2 * dropped.size(); count *= 2) {
    add_unless_empty(set_policy(from, first(dropped, count), RetentionPolicy::kKeep), edits);
  }
  for (const std::uint32_t block : first(dropped, kSingle)) {
    const CandidateEdit keep = set_policy(from, {block}, RetentionPolicy::kKeep);
    add_unless_empty(keep, edits);
    for (const std::uint32_t other : first(moved, kExchanged)) {
      CandidateEdit exchange = keep;
      for (const Change& change : set_policy(from, {other}, RetentionPolicy::kDrop))
        exchange.push_back(change);
      add_unless_empty(std::move(exchange), edits);
    }
  }
  return edits;
}

std::vector<std::uint32_t> Neighbourhood::stretch(std::mt19937_64& generator) const {
  const std::size_t all = by_position_.size();
  const std::size_t length = std::max<std::size_t>(1, all >> (generator() % 5));
  const std::size_t begin = generator() % (all - length + 1);
  const auto first = by_position_.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(length)};
}

std::vector<CandidateEdit> Neighbourhood::exchanges(const Decisions& from,
                                                    std::span<const double> prices,
                                                    std::size_t count,
                                                    std::mt19937_64& generator) const {
  constexpr std::size_t kDraws = 8;  // draws per wanted exchange
  const std::vector<Recomputable>& blocks = space_.droppable();
  std::vector<CandidateEdit> edits;
  if (by_position_.empty()) return edits;
  for (std::size_t draw = 0; draw < kDraws * count && edits.size() < count; ++draw) {
    std::vector<std::uint32_t> kept = stretch(generator);
    std::vector<std::uint32_t> dropped = stretch(generator);
    const auto stays = [&](auto i) { return from.policies[i] == RetentionPolicy::kKeep; };
    std::erase_if(kept, stays);
    std::erase_if(dropped, std::not_fn(stays));
    sort_by_price(kept, prices);
    std::ranges::reverse(kept);
    sort_by_price(dropped, prices);
    kept = first(kept, std::size_t{1} << (generator() % 4));
    um::Bytes wanted;
    double gain = 0;
    for (const std::uint32_t i : kept) {
      wanted += blocks[i].size;
      gain += prices[i] * static_cast<double>(blocks[i].size.count());
    }
    wanted = um::Bytes{wanted.count() * (generator() % 4) / 2};  // none to one and a half
    std::size_t taken = 0;
    for (um::Bytes made; taken < dropped.size() && made < wanted; ++taken) {
      made += blocks[dropped[taken]].size;
      gain -= prices[dropped[taken]] * static_cast<double>(blocks[dropped[taken]].size.count());
    }
    if (gain <= 0) continue;
    CandidateEdit edit = set_policy(from, kept, RetentionPolicy::kKeep);
    const RetentionPolicy policy =
        generator() % 4 == 0 ? RetentionPolicy::kDropPerUse : RetentionPolicy::kDrop;
    for (const Change& change : set_policy(from, first(dropped, taken), policy))
      edit.push_back(change);
    add_unless_empty(std::move(edit), edits);
  }
  return edits;
}

CandidateEdit Neighbourhood::random(const Decisions& from, std::size_t max,
                                    std::mt19937_64& generator) const {
  const std::size_t blocks = by_cost_.size();
  const std::size_t tasks = space_.choosable().size();
  CandidateEdit edit;
  for (std::uint64_t left = generator() % max + 1; left > 0 && blocks + tasks > 0; --left) {
    const std::uint64_t drawn = generator() % (blocks + tasks);
    if (drawn < blocks) {
      const auto index = static_cast<std::uint32_t>(drawn);
      const auto shift = static_cast<std::uint32_t>(generator() % 2 + 1);
      const auto now = static_cast<std::uint32_t>(from.policies[index]);
      edit.push_back(policy_change(index, static_cast<RetentionPolicy>((now + shift) % 3)));
    } else {
      const auto task = static_cast<std::uint32_t>(space_.choosable()[drawn - blocks]);
      const std::uint32_t other = from.algorithms[task] == 0 ? space_.start().algorithms[task] : 0;
      edit.push_back({.what = Change::What::kAlgorithm, .index = task, .value = other});
    }
  }
  return edit;
}

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
  std::vector<CandidateEdit> edits;
  if (may_cut_) {
    const std::uint32_t other = from.move_order.in_parts ? 0 : 1;
    edits.push_back({{.what = Change::What::kInParts, .value = other}});
  }
  for (const std::uint32_t spare : kSpares) {
    if (spare != from.spare) edits.push_back({{.what = Change::What::kSpare, .value = spare}});
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
