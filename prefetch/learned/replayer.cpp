#include "prefetch/learned/replayer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {

void LiveBlocks::allocate(std::uint64_t block, um::Bytes size) {
  blocks_[block] = {.name = {.is_fresh = true, .id = next_ordinal_++, .born = iteration_},
                    .size = size};
}

void LiveBlocks::see(std::uint64_t block, um::Bytes size) {
  blocks_.try_emplace(block, Block{.name = {.is_fresh = false, .id = block}, .size = size});
}

BlockName LiveBlocks::name(std::uint64_t block) const {
  const BlockName by_owner{.is_fresh = false, .id = block};
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return by_owner;
  const BlockName& name = found->second.name;
  return name.is_fresh && iteration_ - name.born >= kOld ? by_owner : name;
}

ReplayNames::Claim ReplayNames::claim(std::uint64_t block, const BlockName& name) {
  if (const auto known = names_.find(block); known != names_.end()) return {.name = known->second};
  BlockName in_cycle = name;
  in_cycle.born %= cycle_;
  const auto [owner, is_free] = owners_.try_emplace(in_cycle, block);
  if (!is_free) {
    names_.erase(owner->second);
    owner->second = block;
  }
  names_.emplace(block, in_cycle);
  return {.name = in_cycle, .has_displaced = !is_free};
}

std::optional<BlockName> ReplayNames::release(std::uint64_t block) {
  const auto found = names_.find(block);
  if (found == names_.end()) return std::nullopt;
  const BlockName name = found->second;
  names_.erase(found);
  owners_.erase(name);
  return name;
}

std::optional<std::uint64_t> ReplayNames::owner(const BlockName& name) const {
  const auto found = owners_.find(name);
  if (found == owners_.end()) return std::nullopt;
  return found->second;
}

namespace {

std::string milliseconds(um::Nanoseconds time) {
  return std::to_string(time.count() / 1'000'000) + "." +
         std::to_string(time.count() / 100'000 % 10) + " ms";
}

}  // namespace

std::vector<PrefetchCommand> Replayer::mark(um::Nanoseconds at) {
  live_.begin_iteration();
  if (state_ == State::kIdle) {
    begin_recording();
    return {};
  }
  ++counters_.iterations;
  switch (state_) {
    case State::kRecording:
      end_recording(at);
      break;
    case State::kReplaying:
    case State::kAbandoned:
      end_replayed();
      break;
    case State::kLoaded:
      ++counters_.idle;
      if (phase() == 0) begin_replay();
      break;
    default:
      ++counters_.idle;
      if (state_ == State::kPaused && --pause_left_ == 0) begin_recording();
  }
  return issue();
}

std::size_t Replayer::phase() const {
  const std::size_t cycle = replay_plan_->step.ends.size();
  return (live_.iteration() + cycle - replay_plan_->step.first) % cycle;
}

void Replayer::begin_recording() {
  state_ = State::kRecording;
  recordings_.clear();
  current_.emplace(options_.max_events, live_.iteration());
}

void Replayer::end_recording(um::Nanoseconds at) {
  ++counters_.recorded;
  current_->end(at);
  if (current_->is_too_long()) {
    pause("the iteration has more than " + std::to_string(options_.max_events) +
          " allocations, frees and touches");
    return;
  }
  recordings_.push_back(
      *std::exchange(current_, Recording{options_.max_events, live_.iteration()}));
  if (recordings_.size() > 2 * options_.longest_cycle) recordings_.erase(recordings_.begin());
  auto found = find_cycle(recordings_, options_.longest_cycle);
  if (!found) return;
  recorded_ = std::move(*found);
  recordings_.clear();
  state_ = State::kReady;
}

void Replayer::pause(std::string reason) {
  refusal_ = std::move(reason);
  recordings_.clear();
  pause_left_ = std::max<std::uint64_t>(1, options_.retry_after);
  state_ = State::kPaused;
}

void Replayer::load(std::variant<ReplayPlan, NotLearned> result) {
  um::expects(is_ready(), "a replay plan that nobody asked for");
  recorded_ = {};
  if (auto* refused = std::get_if<NotLearned>(&result)) {
    pause(std::move(refused->reason));
    return;
  }
  refusal_.clear();
  replay_plan_ = std::move(std::get<ReplayPlan>(result));
  abandoned_in_succession_ = 0;
  ++counters_.replay_plans;
  state_ = State::kLoaded;
}

void Replayer::begin_replay() {
  issuer_.emplace(*replay_plan_, next_ticket_);
  names_.emplace(replay_plan_->step.ends.size());
  for (const auto& [id, block] : live_.all()) {
    issuer_->adopt(names_->claim(id, live_.name(id)).name, block.size);
  }
  issuer_->begin(false);
  expected_ = 0;
  misses_ = 0;
  state_ = State::kReplaying;
}

void Replayer::end_replayed() {
  const std::size_t now = phase();
  const std::size_t end =
      replay_plan_->step.ends[(now == 0 ? replay_plan_->step.ends.size() : now) - 1];
  const std::size_t left_out = end - std::min(end, expected_);
  const bool is_followed = state_ == State::kReplaying && misses_ + left_out <= options_.max_misses;
  ++(is_followed ? counters_.followed : counters_.abandoned);
  abandoned_in_succession_ = is_followed ? 0 : abandoned_in_succession_ + 1;
  if (abandoned_in_succession_ >= options_.relearn_after) {
    forget_replay_plan();
    begin_recording();
    return;
  }
  misses_ = 0;
  expected_ = now == 0 ? 0 : end;
  if (now == 0) {
    issuer_->begin(is_followed);
    state_ = State::kReplaying;
  } else if (!is_followed) {
    state_ = State::kAbandoned;
    issuer_->stop();
  }
}

void Replayer::forget_replay_plan() {
  next_ticket_ = issuer_->next_ticket();
  issuer_.reset();
  names_.reset();
  replay_plan_.reset();
}

BlockName Replayer::claim(std::uint64_t block) {
  const auto claim = names_->claim(block, live_.name(block));
  if (claim.has_displaced) issuer_->release(claim.name);
  return claim.name;
}

void Replayer::allocate(std::uint64_t block, um::Bytes size) {
  if (state_ == State::kIdle) return;
  live_.allocate(block, size);
  if (state_ == State::kRecording) current_->allocate(live_.name(block), size);
  if (issuer_) claim(block);
}

std::vector<PrefetchCommand> Replayer::free(std::uint64_t block) {
  if (state_ == State::kRecording) current_->free(live_.name(block));
  if (issuer_) {
    if (const auto name = names_->release(block)) issuer_->release(*name);
  }
  live_.free(block);
  return issue();
}

std::vector<PrefetchCommand> Replayer::touch(const BlockUse& use) {
  ++counters_.touches;
  live_.see(use.block, use.size);
  const Touch touch{.block = issuer_ ? claim(use.block) : live_.name(use.block),
                    .size = use.size,
                    .access = use.access,
                    .at = use.at};
  if (state_ == State::kReplaying) {
    match(touch);
  } else {
    ++counters_.unguided;
    if (state_ == State::kRecording) current_->touch(touch);
  }
  // Issues moves for this task first: one move is faster than faults.
  std::vector<PrefetchCommand> commands = issue();
  if (issuer_ && !issuer_->touch(touch.block, touch.size)) ++counters_.late;
  return commands;
}

void Replayer::match(const Touch& touch) {
  const std::vector<ExpectedTouch>& touches = replay_plan_->step.touches;
  const auto found = find(touch);
  const bool is_hit = found == expected_ && touches[*found].access == touch.access;
  ++(is_hit ? counters_.hits : counters_.misses);
  if (found) {
    misses_ += *found - expected_;  // skipped touches
    expected_ = *found + 1;
    issuer_->reach(touches[*found].task);
  }
  if (!is_hit) ++misses_;
  if (misses_ <= options_.max_misses) return;
  state_ = State::kAbandoned;
  issuer_->stop();
}

std::optional<std::size_t> Replayer::find(const Touch& touch) const {
  const std::vector<ExpectedTouch>& touches = replay_plan_->step.touches;
  const std::size_t end = std::min(touches.size(), expected_ + 1 + options_.look_ahead);
  for (std::size_t i = expected_; i < end; ++i) {
    if (touches[i].block != touch.block) continue;
    if (replay_plan_->step.graph[replay_plan_->step.blocks.at(touch.block)].size == touch.size)
      return i;
  }
  return std::nullopt;
}

std::string Replayer::description() const {
  const auto cycle_of = [](std::size_t iterations) {
    return iterations == 1 ? std::string{"each iteration"}
                           : "cycles of " + std::to_string(iterations) + " iterations";
  };
  switch (state_) {
    case State::kIdle:
      return "no iteration has been marked";
    case State::kRecording:
      return "recording: the iterations have not gone through a cycle twice yet";
    case State::kReady:
      return "learning " + cycle_of(recorded_.cycle);
    case State::kLoaded:
      return "about to follow " + cycle_of(replay_plan_->step.ends.size());
    case State::kReplaying:
      return "following " + cycle_of(replay_plan_->step.ends.size()) + ", planned " +
             milliseconds(replay_plan_->planned) + " of which " +
             milliseconds(replay_plan_->computing) + " computing, by page faults alone " +
             milliseconds(replay_plan_->on_demand);
    case State::kAbandoned:
      return "off the learned path until the next cycle begins";
    case State::kPaused:
      break;
  }
  return "not learned, another try in " + std::to_string(pause_left_) + " iterations: " + refusal_;
}

std::vector<PrefetchCommand> Replayer::complete(std::uint64_t ticket) {
  if (issuer_) issuer_->complete(ticket);
  return issue();
}

std::vector<PrefetchCommand> Replayer::issue() {
  if (!issuer_) return {};
  std::vector<PrefetchCommand> commands = issuer_->issue();
  for (PrefetchCommand& command : commands) {
    command.block = names_->owner(command.name).value();
    ++(command.to == um::MemoryTier::kNear ? counters_.prefetches : counters_.offloads);
  }
  return commands;
}

}  // namespace spillway::prefetch
