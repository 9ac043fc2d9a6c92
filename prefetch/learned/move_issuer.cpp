#include "prefetch/learned/move_issuer.h"

#include <algorithm>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/state_home.h"

namespace spillway::prefetch {

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
    // What it still waits for will not happen: the room that it needs is in use.
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
