#include "prefetch/planners/modnn/move_log.h"

#include <algorithm>
#include <cstdint>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes of the first k moves, for every k.
std::vector<Bytes> running_total(const std::vector<Move>& moves) {
  std::vector<Bytes> total{Bytes{}};
  for (const Move& move : moves) total.push_back(total.back() + move.size);
  return total;
}

// Finds what each run waits for, run by run. `landed[p]`: prefetches that run p itself needs.
class RunConditions {
 public:
  RunConditions(Plan& plan, std::span<const Bytes> demand, Bytes pool)
      : plan_{plan},
        demand_{demand},
        pool_{pool},
        offloaded_{running_total(plan.offloads)},
        prefetched_{running_total(plan.prefetches)} {}

  void add(std::span<const std::uint32_t> landed) {
    Progress sure;
    for (Position p = 0; p < plan_.runs.size(); ++p) {
      sure.runs = p;
      sure.prefetches = std::max(sure.prefetches, landed[p]);
      sure.offloads = std::max(sure.offloads, offloads_before(sure.prefetches));
      sure.offloads = std::max(sure.offloads, offloads_for(p, sure));
      plan_.runs[p].after = sure;
    }
  }

 private:
  // Offloads that have ended when `prefetches` of them have started.
  [[nodiscard]] std::uint32_t offloads_before(std::uint32_t prefetches) const {
    return prefetches == 0 ? 0 : plan_.prefetches[prefetches - 1].after.offloads;
  }

  // Offloads that run p must wait for, whichever prefetches beyond the sure ones have started.
  [[nodiscard]] std::uint32_t offloads_for(Position p, const Progress& sure) const {
    std::uint32_t needed = 0;
    for (std::uint32_t k = sure.prefetches; k <= plan_.prefetches.size(); ++k) {
      if (k > 0 && plan_.prefetches[k - 1].after.runs > p) break;
      std::uint32_t away = std::max(sure.offloads, offloads_before(k));
      if (demand_[p] + prefetched_[k] <= pool_ + offloaded_[away]) continue;
      while (demand_[p] + prefetched_[k] > pool_ + offloaded_[away]) {
        ++away;
        um::expects(away < offloaded_.size(), "the virtual execution kept within its pool");
      }
      needed = std::max(needed, away);
    }
    return needed;
  }

  Plan& plan_;
  std::span<const Bytes> demand_;
  Bytes pool_;
  std::vector<Bytes> offloaded_;
  std::vector<Bytes> prefetched_;
};

}  // namespace

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
  RunConditions{plan, demand, pool}.add(landed);
}

}  // namespace spillway::prefetch
