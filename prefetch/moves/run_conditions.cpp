#include "prefetch/moves/run_conditions.h"

#include <algorithm>
#include <vector>

#include "prefetch/liveness.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes of the first k moves, for every k, and of what was moved before all of them.
std::vector<Bytes> running_total(const std::vector<Move>& moves, Bytes before) {
  std::vector<Bytes> total{before};
  total.reserve(moves.size() + 1);
  for (const Move& move : moves) total.push_back(total.back() + move.size);
  return total;
}

// Finds what each run waits for, run by run.
class RunConditions {
 public:
  RunConditions(Plan& plan, std::span<const Bytes> demand, Bytes pool, Bytes far)
      : plan_{plan},
        demand_{demand},
        pool_{pool},
        offloaded_{running_total(plan.offloads, far)},
        prefetched_{running_total(plan.prefetches, {})} {}

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
        um::expects(away < offloaded_.size(), "an execution keeps within its pool");
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

void add_run_conditions(std::span<const Bytes> demand, Bytes pool, Bytes far,
                        std::span<const std::uint32_t> landed, Plan& plan) {
  RunConditions{plan, demand, pool, far}.add(landed);
}

}  // namespace spillway::prefetch
