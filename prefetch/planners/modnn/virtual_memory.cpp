#include "prefetch/planners/modnn/virtual_memory.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "prefetch/moves/schedule.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using um::Nanoseconds;

// A segment in the search, with the cost of emptying it.
struct SchemeCandidate {
  const Segment& segment;
  std::optional<Departure> departure;

  [[nodiscard]] bool must_stay() const { return segment.block && !departure; }
};

// Returns the scheme that begins with the first of `candidates`; nullopt when it does not reach
// `size`.
std::optional<OffloadScheme> scheme_from(std::span<const SchemeCandidate> candidates, Bytes size,
                                         const StreamClocks& clocks) {
  OffloadScheme scheme{.offset = candidates.front().segment.offset};
  Nanoseconds end = clocks.link_free;
  for (const SchemeCandidate& candidate : candidates) {
    if (candidate.must_stay()) return std::nullopt;
    scheme.size += candidate.segment.size;
    if (candidate.segment.block) {
      const Departure& departure = *candidate.departure;
      scheme.blocks.push_back(*candidate.segment.block);
      scheme.next = std::min(scheme.next, departure.next);
      scheme.transfer += departure.duration;
      if (departure.duration > Nanoseconds{0}) {
        end = std::max(end, departure.ready) + departure.duration;
        scheme.delay = std::max(scheme.delay, end - clocks.now);
      }
    }
    if (scheme.size >= size) return scheme;
  }
  return std::nullopt;
}

constexpr DataId kWorkspace{~0U};

// Places the largest first, each in the smallest gap that holds it. Keeps the sizes that did not
// fit.
void place(std::vector<Bytes> gaps, std::vector<Bytes>& sizes) {
  std::ranges::sort(sizes, std::ranges::greater{});
  std::erase_if(sizes, [&](Bytes size) {
    auto best = gaps.end();
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap) {
      if (*gap >= size && (best == gaps.end() || *gap < *best)) best = gap;
    }
    if (best == gaps.end()) return false;
    *best -= size;
    return true;
  });
}

}  // namespace

bool SegmentList::allocate(DataId block, Bytes size) {
  um::expects(!contains(block), "a block has one place");
  const std::optional<Bytes> offset = arena_.allocate(size);
  if (!offset) return false;
  occupied_.emplace(offset->count(), Segment{.offset = *offset, .size = size, .block = block});
  offsets_.emplace(key(block), *offset);
  return true;
}

void SegmentList::free(DataId block) {
  const auto found = offsets_.find(key(block));
  um::expects(found != offsets_.end(), "only a block that has a place can leave it");
  arena_.free(found->second);
  occupied_.erase(found->second.count());
  offsets_.erase(found);
}

std::vector<Segment> SegmentList::segments() const {
  std::vector<Segment> all;
  Bytes end;
  const auto add_free = [&](Bytes up_to) {
    if (end < up_to) all.push_back({.offset = end, .size = up_to - end, .block = std::nullopt});
  };
  for (const auto& [offset, segment] : occupied_) {
    add_free(segment.offset);
    all.push_back(segment);
    end = segment.offset + segment.size;
  }
  add_free(arena_.size());
  return all;
}

std::optional<OffloadScheme> find_scheme(std::span<const Segment> segments, Bytes size,
                                         const StreamClocks& clocks,
                                         const FindDeparture& departure) {
  std::vector<SchemeCandidate> candidates;
  candidates.reserve(segments.size());
  for (const Segment& segment : segments) {
    candidates.push_back({.segment = segment,
                          .departure = segment.block ? departure(*segment.block) : std::nullopt});
  }
  const auto is_better = [](const OffloadScheme& a, const OffloadScheme& b) {
    return std::tuple{a.delay, b.next, a.transfer} < std::tuple{b.delay, a.next, b.transfer};
  };
  std::optional<OffloadScheme> best;
  for (std::size_t first = 0; first < candidates.size(); ++first) {
    auto scheme = scheme_from(std::span{candidates}.subspan(first), size, clocks);
    if (scheme && (!best || is_better(*scheme, *best))) best = std::move(scheme);
  }
  return best;
}

void MoveLog::offload(DataId block, Bytes size, Position from, Position last, bool is_clean) {
  entries_.push_back({.move = {.data = block,
                               .offset = {},
                               .size = size,
                               .is_clean = is_clean,
                               .after = {.runs = from + 1},
                               .free_after = from < last ? last + 1 : 0}});
}

std::size_t MoveLog::load(DataId block, Bytes size, Position at, Position next) {
  entries_.push_back({.move = {.data = block, .offset = {}, .size = size, .after = {.runs = at}},
                      .is_load = true,
                      .next = next});
  return entries_.size() - 1;
}

void MoveLog::add_to(Plan& plan, std::span<const Bytes> demand, Bytes pool) const {
  std::vector<std::uint32_t> landed(plan.runs.size());
  for (const Entry& entry : entries_) {
    if (entry.is_cancelled) continue;
    Move move = entry.move;
    if (!entry.is_load) {
      plan.offloads.push_back(move);
      continue;
    }
    move.after.offloads = static_cast<std::uint32_t>(plan.offloads.size());
    plan.prefetches.push_back(move);
    landed[entry.next] = static_cast<std::uint32_t>(plan.prefetches.size());
  }
  add_run_conditions(demand, pool, Bytes{}, landed, plan);
}

VirtualMemory::VirtualMemory(const Problem& problem)
    : block_sizes_{problem.graph, problem.page},
      link_{problem.profile.link},
      lives_{find_lives(problem.graph, runs_in_order(problem.graph))},
      blocks_(problem.graph.data.size()),
      segments_{block_sizes_.pool(problem.budget) - resident_state(problem.graph, block_sizes_),
                problem.page} {
  std::erase_if(lives_, [](const Life& life) { return life.outlives_step(); });
  for (const Task& task : problem.graph.tasks) {
    operands_.push_back(operands(task));
    std::erase_if(operands_.back(), [&](DataId id) {
      return !block_sizes_.is_movable(id) || problem.graph[id].kind == DataKind::kState;
    });
  }
}

Nanoseconds VirtualMemory::transfer_time(Bytes size) const {
  return link_.latency + size / link_.prefetch;
}

Bytes resident_state(const TaskGraph& graph, const BlockSizes& block_sizes) {
  Bytes size;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].kind == DataKind::kState) size += block_sizes.size(DataId(i));
  }
  return size;
}

Position VirtualMemory::Block::last_write() const {
  std::size_t i = next - 1;
  while (i > 0 && !life->accesses[i].writes) --i;
  return life->accesses[i].position;
}

// ---- one run

void VirtualMemory::begin(Position p) {
  position_ = p;
  for (; next_life_ < lives_.size() && lives_[next_life_].begin() == p; ++next_life_) {
    at(lives_[next_life_].data) = {.life = &lives_[next_life_]};
  }
  std::vector<DataId> inputs;
  for (const DataId id : operands_[p]) {
    if (segments_.contains(id)) continue;
    if (!allocate(id, size(id), p)) {
      defragment({});
      inputs.clear();
      break;
    }
    if (at(id).next > 0) inputs.push_back(id);
  }
  for (const DataId id : inputs) load(id);
  for (const DataId id : operands_[p]) delay_until(at(id).arrives);
}

void VirtualMemory::end(Position p, Nanoseconds duration) {
  clocks_.now += duration;
  finish_.push_back(clocks_.now);
  if (segments_.contains(kWorkspace)) segments_.free(kWorkspace);
  for (const DataId id : operands_[p]) {
    Block& block = at(id);
    const bool writes = block.life->accesses[block.next].writes;
    block.is_near = true;
    block.is_fresh = writes;
    if (writes) block.is_far_valid = false;
    block.load.reset();
    if (++block.next == block.life->accesses.size()) segments_.free(id);
  }
}

// ---- room

std::optional<Departure> VirtualMemory::departure(DataId id, Position last) const {
  if (id == kWorkspace) return std::nullopt;
  const Block& block = at(id);
  if (block.is_fresh || block.next == 0 || block.next_use() <= last) return std::nullopt;
  Departure departure{.ready = finish_[leaves_from(block)], .next = block.next_use()};
  if (!block.is_far_valid) departure.duration = link_.latency + size(id) / link_.offload;
  return departure;
}

// Returns the run after which the copy may start (Fig. 3: the task that generated the block), or
// its last use if the link cannot copy while tasks read.
Position VirtualMemory::leaves_from(const Block& block) const {
  return link_.copies_while_read && !block.is_far_valid ? block.last_write() : block.last_use();
}

std::optional<OffloadScheme> VirtualMemory::find(Bytes size, Position last) const {
  return find_scheme(segments_.segments(), size, clocks_,
                     [&](DataId id) { return departure(id, last); });
}

// Keeps operands of runs up to `last`. For the current run, now() becomes the time at which the
// room is free.
bool VirtualMemory::allocate(DataId id, Bytes size, Position last) {
  if (segments_.allocate(id, size)) return true;
  const auto scheme = find(size, last);
  if (!scheme) return false;
  for (const DataId leaving : scheme->blocks) offload(leaving);
  if (last == position_) delay_until(clocks_.now + scheme->delay);
  um::expects(segments_.allocate(id, size), "a scheme makes the room that it was asked for");
  return true;
}

void VirtualMemory::offload(DataId id) {
  Block& block = at(id);
  if (!block.is_far_valid) {
    clocks_.link_free = std::max(clocks_.link_free, finish_[leaves_from(block)]) + link_.latency +
                        size(id) / link_.offload;
  }
  log_.offload(id, size(id), leaves_from(block), block.last_use(), block.is_far_valid);
  block.is_near = false;
  block.is_far_valid = true;
  away_.emplace(block.next_use(), id);
  segments_.free(id);
}

void VirtualMemory::load(DataId id) {
  Block& block = at(id);
  clocks_.link_free = std::max(clocks_.link_free, clocks_.now) + transfer_time(size(id));
  block.arrives = clocks_.link_free;
  block.load = log_.load(id, size(id), position_, block.next_use());
  block.is_near = true;
  block.is_fresh = true;
  away_.erase({block.next_use(), id});
}

// Undoes the load of a block that leaves before its first use.
void VirtualMemory::take_back(DataId id) {
  Block& block = at(id);
  log_.cancel(*block.load);
  block.load.reset();
  block.is_near = false;
  away_.emplace(block.next_use(), id);
  segments_.free(id);
}

void VirtualMemory::defragment(Bytes workspace) {
  for (const Segment& segment : segments_.segments()) {
    if (!segment.block) continue;
    const DataId id = *segment.block;
    if (at(id).load) {
      take_back(id);
    } else if (at(id).is_near && at(id).next > 0) {
      offload(id);
    } else {
      segments_.free(id);  // a reserved place without content
    }
  }
  delay_until(clocks_.link_free);
  place_all(workspace);
}

// Places the operands of the current run side by side in empty memory.
void VirtualMemory::place_all(Bytes workspace) {
  for (const DataId id : operands_[position_]) {
    um::expects(segments_.allocate(id, size(id)), "every run fits alone");
    if (at(id).next > 0) load(id);
    delay_until(at(id).arrives);
  }
  if (workspace > Bytes{}) {
    um::expects(segments_.allocate(kWorkspace, workspace), "every run fits alone");
  }
}

// ---- workspace

std::optional<OffloadScheme> VirtualMemory::scheme_for_workspace(Bytes size) const {
  OffloadScheme none;
  if (size == Bytes{}) return none;
  for (const Segment& segment : segments_.segments()) {
    if (!segment.block && segment.size >= size) return none;
  }
  return find(size, position_);
}

void VirtualMemory::take_workspace(Bytes size) {
  if (size == Bytes{}) return;
  if (!allocate(kWorkspace, size, position_)) defragment(size);
}

// ---- looking ahead

std::optional<Position> VirtualMemory::next_missing(Position p) const {
  const auto found = away_.lower_bound({p + 1, DataId{0}});
  if (found == away_.end()) return std::nullopt;
  return found->first;
}

std::vector<DataId> VirtualMemory::missing(Position s) const {
  std::vector<DataId> blocks;
  for (auto it = away_.lower_bound({s, DataId{0}}); it != away_.end() && it->first == s; ++it) {
    blocks.push_back(it->second);
  }
  return blocks;
}

bool VirtualMemory::prefetch(DataId block, Position s) {
  if (!allocate(block, size(block), s)) return false;
  load(block);
  return true;
}

// Returns true when the block, near now, will be near when run i starts: as its operand, or because
// no run uses it before.
bool VirtualMemory::stays_until(DataId id, Position i) const {
  if (id == kWorkspace) return false;
  if (std::ranges::binary_search(operands_[i], id)) return true;
  const Block& block = at(id);
  const bool is_made_now = block.next == 0;
  if (is_made_now && block.life->accesses.size() == 1) return false;
  const Position use = is_made_now ? block.life->accesses[1].position : block.next_use();
  return (is_made_now || block.is_fresh) && use > i;
}

bool VirtualMemory::can_be_allocated(Position i, std::span<const DataId> more) const {
  std::vector<Bytes> gaps{Bytes{}};
  for (const Segment& segment : segments_.segments()) {
    if (segment.block && stays_until(*segment.block, i)) {
      gaps.emplace_back();
    } else {
      gaps.back() += segment.size;
    }
  }
  std::vector<Bytes> sizes;
  const auto add = [&](DataId id) {
    if (!segments_.contains(id)) sizes.push_back(size(id));
  };
  std::ranges::for_each(operands_[i], add);
  for (const DataId id : more) {
    if (!std::ranges::binary_search(operands_[i], id)) add(id);
  }
  place(std::move(gaps), sizes);
  return sizes.empty();
}

Nanoseconds VirtualMemory::displaced(std::span<const DataId> blocks, Bytes workspace,
                                     const OffloadScheme& scheme) const {
  std::vector<Bytes> gaps;
  std::vector<Bytes> others;  // without those that the scheme takes
  for (const Segment& segment : segments_.segments()) {
    if (segment.block) continue;
    gaps.push_back(segment.size);
    const Bytes end = scheme.offset + scheme.size;
    if (segment.offset < scheme.offset || segment.offset >= end) others.push_back(segment.size);
  }
  if (scheme.blocks.empty() && workspace > Bytes{}) {  // it takes the smallest gap that holds it
    std::ranges::sort(others);
    const auto taken = std::ranges::lower_bound(others, workspace);
    if (taken != others.end()) *taken -= workspace;
  }
  std::vector<Bytes> without;
  for (const DataId id : blocks) without.push_back(size(id));
  std::vector<Bytes> with = without;
  place(std::move(gaps), without);
  place(std::move(others), with);
  Nanoseconds time{0};
  for (const Bytes size : with) time += transfer_time(size);
  for (const Bytes size : without) time -= transfer_time(size);
  return std::max(time, Nanoseconds{0});
}

}  // namespace spillway::prefetch
