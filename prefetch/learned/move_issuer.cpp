#include "prefetch/learned/move_issuer.h"

#include <algorithm>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/state_home.h"

namespace spillway::prefetch {

NearPages::NearPages(const TaskGraph& graph, const BlockSizes& block_sizes)
    : page_{block_sizes.page()}, blocks_(graph.data.size()) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].pages.assign(block_sizes.size(DataId(i)) / page_, State::kFar);
  }
}

bool NearPages::touch(DataId data) {
  Block& block = at(data);
  bool was_near = true;
  bool was_moving = false;
  for (State& page : block.pages) {
    if (page == State::kFar) ++near_;
    was_near = was_near && page == State::kNear;
    was_moving = was_moving || page == State::kComing || page == State::kLeaving;
    page = State::kNear;
  }
  if (was_moving) ++block.life;
  was_near = was_near || !block.has_content;
  block.last_use = ++uses_;
  block.has_content = true;
  return was_near;
}

void NearPages::shrink(um::Bytes max, DataId kept) {
  while (near_ * page_ > max) {
    Block* oldest = nullptr;
    for (Block& block : blocks_) {
      if (&block == &at(kept) || std::ranges::count(block.pages, State::kNear) == 0) continue;
      if (oldest == nullptr || block.last_use < oldest->last_use) oldest = &block;
    }
    if (oldest == nullptr) return;
    for (State& page : oldest->pages) {
      if (page != State::kNear || near_ * page_ <= max) continue;
      page = State::kFar;
      --near_;
    }
  }
}

void NearPages::release(DataId data) {
  Block& block = at(data);
  for (State& page : block.pages) {
    if (page != State::kFar) --near_;
    page = State::kFar;
  }
  block.has_content = false;
  ++block.life;
}

bool NearPages::are_leaving(const PageRange& range) const {
  const std::vector<State>& pages = at(range.data).pages;
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (pages[i] == State::kLeaving) return true;
  }
  return false;
}

um::Bytes NearPages::far(const PageRange& range) const {
  const std::vector<State>& pages = at(range.data).pages;
  std::uint64_t far = 0;
  for (std::uint64_t i = range.begin; i < range.end; ++i) far += pages[i] == State::kFar ? 1 : 0;
  return far * page_;
}

template <typename Moves>
std::optional<PageRange> NearPages::move(const PageRange& range, State to, const Moves& moves) {
  std::vector<State>& pages = at(range.data).pages;
  PageRange moved{.data = range.data, .begin = range.end, .end = range.begin};
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (!moves(pages[i])) continue;
    if (pages[i] == State::kFar) ++near_;
    pages[i] = to;
    moved.begin = std::min(moved.begin, i);
    moved.end = i + 1;
  }
  if (moved.begin >= moved.end) return std::nullopt;
  return moved;
}

std::optional<PageRange> NearPages::bring(const PageRange& range) {
  return move(range, State::kComing, [](State page) { return page == State::kFar; });
}

std::optional<PageRange> NearPages::send(const PageRange& range) {
  return move(range, State::kLeaving,
              [](State page) { return page == State::kNear || page == State::kComing; });
}

void NearPages::arrive(const PageRange& range) {
  const auto came = move(range, State::kNear, [](State page) { return page == State::kComing; });
  if (came) at(range.data).last_use = ++uses_;
}

void NearPages::leave(const PageRange& range) {
  std::vector<State>& pages = at(range.data).pages;
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (pages[i] != State::kLeaving) continue;
    pages[i] = State::kFar;
    --near_;
  }
}

namespace {

// Finds the first run from `from` on that uses each block.
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
  // A prefetch returns what the last preceding offload of its block took away.
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
    if (progress_ == before) return std::nullopt;  // no move was dropped that others wait for
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

MoveIssuer::MoveIssuer(const ReplayPlan& replay_plan, std::uint64_t first_ticket)
    : ids_{replay_plan.step.blocks},
      blocks_(replay_plan.step.graph.data.size()),
      terms_{replay_plan.step.graph, replay_plan.plan},
      near_{replay_plan.step.graph, BlockSizes{replay_plan.step.graph, replay_plan.plan.page}},
      runs_{static_cast<Position>(replay_plan.plan.runs.size())},
      current_{terms_},
      used_(blocks_.size()),
      none_(blocks_.size()),
      next_ticket_{first_ticket} {
  for (const auto& [name, data] : ids_) {
    blocks_[static_cast<std::size_t>(data)] = {.name = name,
                                               .size = replay_plan.step.graph[data].size};
  }
  find_far_between_steps(replay_plan);
}

void MoveIssuer::find_far_between_steps(const ReplayPlan& replay_plan) {
  const BlockSizes block_sizes{replay_plan.step.graph, replay_plan.plan.page};
  const StateHome home{replay_plan.step.graph, block_sizes, replay_plan.plan};
  for (const auto& [name, data] : ids_) {
    const std::vector<bool>& far = home.far_pages(data);
    for (std::uint64_t page = 0; page < far.size(); ++page) {
      if (!far[page]) continue;
      const std::uint64_t begin = page;
      while (page < far.size() && far[page]) ++page;
      far_between_steps_.push_back({.data = data, .begin = begin, .end = page});
    }
  }
}

void MoveIssuer::begin(bool was_followed) {
  settling_.clear();
  tail_.reset();
  if (was_followed) {
    tail_ = std::move(current_);
    tail_->advance(runs_);
  }
  current_ = MoveWalk{terms_};
  ++current_id_;
  used_.assign(used_.size(), false);
  is_stopped_ = false;
  if (!was_followed) settle();
}

void MoveIssuer::settle() {
  for (const PageRange& range : far_between_steps_) {
    if (!near_.has_content(range.data)) continue;
    const auto moved = near_.send(range);
    if (moved) settling_.push_back(command({.to = um::MemoryTier::kFar, .pages = *moved}));
  }
}

std::vector<PrefetchCommand> MoveIssuer::issue() {
  std::vector<PrefetchCommand> commands = std::exchange(settling_, {});
  if (is_stopped_) return commands;
  if (tail_) {
    take(*tail_, current_id_ - 1, used_, commands);
    // Its remaining moves cannot start: the room that they need is in use.
    if (tail_->is_through() || flights_.empty()) tail_.reset();
  }
  if (!tail_) take(current_, current_id_, none_, commands);
  return commands;
}

void MoveIssuer::take(MoveWalk& walk, std::uint64_t id, const std::vector<bool>& used,
                      std::vector<PrefetchCommand>& commands) {
  while (const auto step = walk.next(near_, used)) {
    commands.push_back(
        command({.walk = id, .index = step->index, .to = step->to, .pages = step->pages}));
  }
}

PrefetchCommand MoveIssuer::command(const Flight& flight) {
  const std::uint64_t ticket = next_ticket_++;
  Flight& kept = flights_[ticket] = flight;
  kept.life = near_.life(flight.pages.data);
  const Block& block = blocks_[static_cast<std::size_t>(flight.pages.data)];
  const um::Bytes offset = flight.pages.begin * terms_.page;
  const um::Bytes end = std::min(flight.pages.end * terms_.page, block.size);
  return {.ticket = ticket,
          .to = flight.to,
          .name = block.name,
          .offset = offset,
          .size = end - offset};
}

bool MoveIssuer::touch(BlockName block, um::Bytes size) {
  const auto found = ids_.find(block);
  if (found == ids_.end()) return true;
  const auto data = static_cast<std::size_t>(found->second);
  if (blocks_[data].size != size) return true;
  used_[data] = true;
  const bool was_near = near_.touch(found->second);
  near_.shrink(terms_.pool, found->second);
  return was_near;
}

void MoveIssuer::release(BlockName block) {
  const auto found = ids_.find(block);
  if (found != ids_.end()) near_.release(found->second);
}

void MoveIssuer::complete(std::uint64_t ticket) {
  const auto found = flights_.find(ticket);
  if (found == flights_.end()) return;
  const Flight flight = found->second;
  flights_.erase(found);
  if (flight.life == near_.life(flight.pages.data)) {
    if (flight.to == um::MemoryTier::kNear) {
      near_.arrive(flight.pages);
    } else {
      near_.leave(flight.pages);
    }
  }
  if (flight.walk == current_id_) {
    current_.end(flight.to, flight.index);
  } else if (tail_ && flight.walk + 1 == current_id_) {
    tail_->end(flight.to, flight.index);
  }
}

}  // namespace spillway::prefetch
