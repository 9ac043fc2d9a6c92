#include "prefetch/runtime/copied_state.h"

#include <algorithm>

#include "prefetch/block_sizes.h"
#include "prefetch/runtime/awaited_moves.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// By DataId: whether the step writes it.
std::vector<bool> written_blocks(const StepLayout& layout) {
  std::vector<bool> written(layout.graph.data.size(), false);
  for (const RunLayout& run : layout.runs) {
    for (const Operand& operand : run.operands) {
      if (operand.access != um::Access::kRead)
        written[static_cast<std::size_t>(operand.data)] = true;
    }
  }
  return written;
}

// A charge for as long as it lives.
class Charge {
 public:
  Charge(um::Ledger& ledger, Bytes size) : ledger_{ledger}, size_{size} { ledger_.charge(size_); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() { ledger_.release(size_); }

 private:
  um::Ledger& ledger_;
  Bytes size_;
};

}  // namespace

CopiedState::CopiedState(const StepLayout& layout, const FarPlacement& far, um::Range near,
                         um::Copies& copies, CopySegments& segments, CopyArena& arena,
                         um::Ledger& ledger)
    : layout_{layout},
      far_{far},
      near_{near},
      copies_{copies},
      segments_{segments},
      arena_{arena},
      ledger_{ledger} {
  const std::vector<bool> written = written_blocks(layout);
  for (const DataId id : layout.used_state()) {
    if (layout.home.far_pages(id).front()) continue;
    const bool is_renewed = layout.home.copied_pages(id).front();
    near_blocks_.push_back(
        {.data = id, .goes_stale = written[static_cast<std::size_t>(id)] && !is_renewed});
  }
}

void CopiedState::bring_home() {
  if (is_home_) return;
  AwaitedMoves moves;
  for (const NearBlock& block : near_blocks_) {
    arena_.begin_state(block.data);
    copies_.prefetch(far_offset(block.data), bytes(segments_.block(block.data)), moves.one_more());
  }
  moves.wait();
  is_home_ = true;
  has_had_steps_ = false;
}

void CopiedState::send_far() {
  if (!is_home_) return;
  AwaitedMoves moves;
  for (const NearBlock& block : near_blocks_) {
    if (!block.goes_stale || !has_had_steps_) continue;
    copies_.offload(bytes(segments_.block(block.data)), far_offset(block.data), moves.one_more());
  }
  moves.wait();
  for (const NearBlock& block : near_blocks_) arena_.release(segments_.block(block.data));
  is_home_ = false;
}

void CopiedState::begin_step() {
  bring_home();
  has_had_steps_ = true;
}

void CopiedState::use(std::span<const DataId> ids, um::Access access,
                      const StepMemory::StateUse& use) {
  std::vector<um::Range> places;
  for (const DataId id : ids) {
    if (!is_home_ || std::ranges::find(near_blocks_, id, &NearBlock::data) == near_blocks_.end()) {
      return use_alone(ids, access, use);
    }
    places.push_back(bytes(segments_.block(id)));
  }
  use_at(ids, places, access, use);
}

void CopiedState::use_alone(std::span<const DataId> ids, um::Access access,
                            const StepMemory::StateUse& use) {
  send_far();
  std::vector<um::Range> places;
  Bytes end;
  for (const DataId id : ids) {
    const Bytes size = um::round_up(layout_.graph[id].size, kSmallestPage);
    um::expects((end + size).count() <= near_.size(), "blocks that the arena holds");
    places.push_back(near_.subspan(end.count(), size.count()));
    end += size;
  }
  const Charge charge{ledger_, end};
  if (access != um::Access::kWrite) {
    AwaitedMoves moves;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      copies_.prefetch(far_offset(ids[i]), places[i], moves.one_more());
    }
    moves.wait();
  }
  use_at(ids, places, access, use);
}

// What is written is also in far memory afterwards.
void CopiedState::use_at(std::span<const DataId> ids, std::span<const um::Range> places,
                         um::Access access, const StepMemory::StateUse& use) {
  std::vector<std::byte*> addresses;
  for (const um::Range place : places) addresses.push_back(place.data());
  use(addresses);
  if (access == um::Access::kRead) return;
  AwaitedMoves moves;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    copies_.offload(places[i], far_offset(ids[i]), moves.one_more());
  }
  moves.wait();
}

}  // namespace spillway::prefetch
