#include "prefetch/learned/move_walk.h"

#include <algorithm>

#include "prefetch/block_sizes.h"

namespace spillway::prefetch {
namespace {

// The first run from `from` on that uses each block.
class NextUse {
 public:
  NextUse(const TaskGraph& graph, const Plan& plan) : uses_(graph.data.size()) {
    for (Position p = 0; p < plan.runs.size(); ++p) {
      for (const DataId id : operands(graph[plan.runs[p].task])) {
        uses_[static_cast<std::size_t>(id)].push_back(p);
      }
    }
  }
  [[nodiscard]] Position operator()(DataId data, Position from) const {
    const std::vector<Position>& uses = uses_[static_cast<std::size_t>(data)];
    const auto use = std::ranges::lower_bound(uses, from);
    return use == uses.end() ? MoveTerms::kNever : *use;
  }

 private:
  std::vector<std::vector<Position>> uses_;
};

}  // namespace

MoveTerms::MoveTerms(const TaskGraph& graph, const Plan& plan)
    : offloads{plan.offloads},
      prefetches{plan.prefetches},
      page{plan.page},
      pool{BlockSizes{graph, plan.page}.pool(plan.budget)} {
  const NextUse next{graph, plan};
  for (const Move& move : offloads) {
    offload_uses.push_back(next(move.data, move.frees_after()));
  }
  // It brings back what the last of its block's offloads that it waits for took away.
  std::vector<Position> freed(graph.data.size());
  std::vector<std::uint32_t> seen(graph.data.size());
  for (const Move& move : prefetches) {
    const auto data = static_cast<std::size_t>(move.data);
    for (std::uint32_t& i = seen[data]; i < move.after.offloads; ++i) {
      if (offloads[i].data != move.data) continue;
      freed[data] = std::max(freed[data], offloads[i].frees_after());
    }
    prefetch_uses.push_back(next(move.data, std::max(move.after.runs, freed[data])));
  }
}

MoveWalk::MoveWalk(const MoveTerms& terms) : terms_{&terms} {
  offloads_.has_ended.assign(terms.offloads.size(), false);
  prefetches_.has_ended.assign(terms.prefetches.size(), false);
}

bool MoveWalk::is_through() const {
  return offloads_.issued == offloads_.has_ended.size() &&
         prefetches_.issued == prefetches_.has_ended.size();
}

PageRange MoveWalk::pages(const Move& move) const {
  const std::uint64_t begin = move.offset / terms_->page;
  return {.data = move.data, .begin = begin, .end = begin + move.size / terms_->page};
}

void MoveWalk::end(um::MemoryTier to, std::uint32_t index) {
  Queue& queue = to == um::MemoryTier::kFar ? offloads_ : prefetches_;
  std::uint32_t& ended = to == um::MemoryTier::kFar ? progress_.offloads : progress_.prefetches;
  queue.has_ended[index] = true;
  while (ended < queue.issued && queue.has_ended[ended]) ++ended;
}

std::optional<MoveWalk::Step> MoveWalk::next(NearPages& near, const std::vector<bool>& used) {
  while (true) {
    const Progress before = progress_;
    if (auto step = next_offload(near, used)) return step;
    if (auto step = next_prefetch(near, used)) return step;
    if (progress_ == before) return std::nullopt;  // nothing was dropped that others wait for
  }
}

std::optional<MoveWalk::Step> MoveWalk::next_offload(NearPages& near,
                                                     const std::vector<bool>& used) {
  while (offloads_.issued < terms_->offloads.size()) {
    const std::uint32_t index = offloads_.issued;
    const Move& move = terms_->offloads[index];
    const bool is_late =
        progress_.runs >= terms_->offload_uses[index] || used[static_cast<std::size_t>(move.data)];
    if (!is_late && (!progress_.reaches(move.after) || progress_.runs < move.frees_after())) break;
    ++offloads_.issued;
    const auto moved = is_late ? std::nullopt : near.send(pages(move));
    if (moved) return Step{.to = um::MemoryTier::kFar, .index = index, .pages = *moved};
    end(um::MemoryTier::kFar, index);
  }
  return std::nullopt;
}

std::optional<MoveWalk::Step> MoveWalk::next_prefetch(NearPages& near,
                                                      const std::vector<bool>& used) {
  while (prefetches_.issued < terms_->prefetches.size()) {
    const std::uint32_t index = prefetches_.issued;
    const Move& move = terms_->prefetches[index];
    const Position use = terms_->prefetch_uses[index];
    const bool is_late = (use != MoveTerms::kNever && progress_.runs > use) ||
                         used[static_cast<std::size_t>(move.data)];
    const bool is_needed = !is_late && near.has_content(move.data);
    if (is_needed) {
      if (!progress_.reaches(move.after) || near.are_leaving(pages(move))) break;
      if (near.near() + near.far(pages(move)) > terms_->pool) break;
    } else if (!is_late && !progress_.reaches(move.after)) {
      break;
    }
    ++prefetches_.issued;
    const auto moved = is_needed ? near.bring(pages(move)) : std::nullopt;
    if (moved) return Step{.to = um::MemoryTier::kNear, .index = index, .pages = *moved};
    end(um::MemoryTier::kNear, index);
  }
  return std::nullopt;
}

}  // namespace spillway::prefetch
