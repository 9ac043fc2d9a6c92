#include "prefetch/verify/residency_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/state_home.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using Signed = std::int64_t;

// Reasons besides offloads in `away_`.
constexpr std::uint32_t kNear = ~0U;       // not away
constexpr std::uint32_t kAlwaysFar = ~1U;  // far since the step began

// Follows the pages of one block through its lives.
class BlockResidency {
 public:
  BlockResidency(const TaskGraph& graph, const BlockSizes& block_sizes, const Plan& plan,
                 DataId data)
      : graph_{graph},
        name_{graph[data].name},
        plan_{plan},
        page_{block_sizes.page()},
        count_{block_sizes.size(data) / block_sizes.page()} {}

  std::vector<std::uint32_t> offloads;    // of this block, as indices into the plan
  std::vector<std::uint32_t> prefetches;  // as offloads

  // `prefetched[q]`: the number of prefetches that have ended when run q starts.
  std::optional<Violation> follow(const Life& life, std::span<const std::uint32_t> prefetched,
                                  const StateHome& home) {
    if (life.outlives_step() || !offloads.empty() || !prefetches.empty()) look_at_pages();
    is_far_valid_.assign(is_far_valid_.size(), false);
    valid_from_ = life.begins_before_step() ? 0 : life.begin() + 1;
    if (life.begins_before_step()) {
      if (auto violation = begin_step(life, prefetched, home)) return violation;
    }
    for (std::size_t i = 0; i < life.accesses.size(); ++i) {
      const BlockAccess& access = life.accesses[i];
      if (std::ranges::any_of(away_, [](std::uint32_t by) { return by != kNear; })) {
        return Violation{name_ + " is not all near when " +
                         graph_[plan_.runs[access.position].task].name + " (run " +
                         std::to_string(access.position) + ") uses it"};
      }
      if (access.writes) {
        is_far_valid_.assign(is_far_valid_.size(), false);
        valid_from_ = access.position + 1;
      }
      if (i + 1 == life.accesses.size()) break;
      const Position next = life.accesses[i + 1].position;
      if (auto violation = leave(access.position + 1, next)) return violation;
      if (auto violation = come_back(prefetched[next], next)) return violation;
    }
    return life.outlives_step() ? end_step(life, home) : std::nullopt;
  }

  [[nodiscard]] std::optional<Violation> finish() const {
    if (next_offload_ == offloads.size() && next_prefetch_ == prefetches.size())
      return std::nullopt;
    return Violation{name_ + " is moved when nobody needs it"};
  }

 private:
  struct Pages {
    std::size_t begin;
    std::size_t end;
  };
  [[nodiscard]] std::optional<Pages> pages(const Move& move) const {
    const std::uint64_t page = page_.count();
    const std::uint64_t begin = move.offset.count();
    const std::uint64_t size = move.size.count();
    const std::uint64_t all = away_.size() * page;
    if (size == 0 || begin % page != 0 || size % page != 0 || begin > all || size > all - begin) {
      return std::nullopt;
    }
    return Pages{.begin = begin / page, .end = (begin + size) / page};
  }

  // Allocates per-page data. A block that never moves is near as a whole, and its pages may exceed
  // memory.
  void look_at_pages() {
    away_.resize(count_, kNear);
    is_far_valid_.resize(count_, false);
    returns_.resize(count_);
  }

  // Starts state at its home; it returns, or leaves and returns, before its first use.
  std::optional<Violation> begin_step(const Life& life, std::span<const std::uint32_t> prefetched,
                                      const StateHome& home) {
    is_far_valid_ = home.copied_pages(life.data);
    for (std::size_t page = 0; page < away_.size(); ++page) {
      if (!home.far_pages(life.data)[page]) continue;
      away_[page] = kAlwaysFar;
      is_far_valid_[page] = true;
    }
    const Position first = life.accesses.front().position;
    if (auto violation = leave(0, first)) return violation;
    return come_back(prefetched[first], first);
  }

  std::optional<Violation> end_step(const Life& life, const StateHome& home) {
    const Position last = life.accesses.back().position;
    if (auto violation = leave(last + 1, life.whole_step)) return violation;
    const auto all = static_cast<std::uint32_t>(plan_.prefetches.size());
    if (auto violation = come_back(all, life.whole_step)) {
      return violation;
    }
    for (std::size_t page = 0; page < away_.size(); ++page) {
      if ((away_[page] != kNear) != home.far_pages(life.data)[page]) {
        return Violation{name_ + " does not end the step where it began"};
      }
      if (home.copied_pages(life.data)[page] && !is_far_valid_[page]) {
        return Violation{name_ + " ends the step without the far copy that it began with"};
      }
    }
    return std::nullopt;
  }

  // Applies the offloads with room that is free between two uses of the block: after `begin` ended
  // runs, before run `next`.
  std::optional<Violation> leave(Position begin, Position next) {
    for (; next_offload_ < offloads.size(); ++next_offload_) {
      const std::uint32_t index = offloads[next_offload_];
      const Move& move = plan_.offloads[index];
      if (move.frees_after() > next) break;
      if (move.frees_after() < begin) return Violation{name_ + " is offloaded while it is in use"};
      if (move.after.runs < valid_from_)
        return Violation{name_ + " is offloaded before it is written"};
      const auto range = pages(move);
      if (!range)
        return Violation{"an offload of " + name_ + " does not lie inside it in whole pages"};
      for (std::size_t page = range->begin; page < range->end; ++page) {
        if (away_[page] != kNear) return Violation{name_ + " is offloaded twice"};
        if (move.is_clean && !is_far_valid_[page]) {
          return Violation{name_ + " is freed without a valid far copy"};
        }
        if (!move.is_clean && !is_back(page, move.after)) {
          return Violation{name_ + " is offloaded before it has come back"};
        }
        away_[page] = index;
        is_far_valid_[page] = true;
      }
    }
    return std::nullopt;
  }

  // True if the page is guaranteed to be back at progress `now`.
  [[nodiscard]] bool is_back(std::size_t page, const Progress& now) const {
    const Return& last = returns_[page];
    return now.prefetches >= last.prefetches || now.runs > last.use;
  }

  // Applies the prefetches that bring back far pages; `ended` of them have ended at the next use,
  // run `use`.
  std::optional<Violation> come_back(std::uint32_t ended, Position use) {
    for (; next_prefetch_ < prefetches.size(); ++next_prefetch_) {
      const std::uint32_t index = prefetches[next_prefetch_];
      if (index >= ended) break;  // not waited for: belongs to a later use, or the next check fails
      const Move& move = plan_.prefetches[index];
      const auto range = pages(move);
      if (!range)
        return Violation{"a prefetch of " + name_ + " does not lie inside it in whole pages"};
      for (std::size_t page = range->begin; page < range->end; ++page) {
        if (away_[page] == kNear) return Violation{name_ + " is prefetched while it is near"};
        if (away_[page] != kAlwaysFar && away_[page] >= move.after.offloads) {
          return Violation{"a prefetch of " + name_ + " does not wait for its offload"};
        }
        away_[page] = kNear;
        returns_[page] = {.prefetches = index + 1, .use = use};
      }
    }
    return std::nullopt;
  }

  // When a page came back: `prefetches` had ended, or run `use` had started.
  struct Return {
    std::uint32_t prefetches = 0;
    Position use = 0;
  };

  const TaskGraph& graph_;
  const std::string& name_;
  const Plan& plan_;
  Bytes page_;
  std::size_t count_;                // of its pages
  std::vector<std::uint32_t> away_;  // by page: the offload that took it away, or a reason above
  std::vector<bool> is_far_valid_;
  std::vector<Return> returns_;  // by page: the last one
  Position valid_from_ = 0;      // runs that have ended when its last write is complete
  std::size_t next_offload_ = 0;
  std::size_t next_prefetch_ = 0;
};

// Returns the bytes of the first k moves, for every k.
std::vector<Signed> running_total(const std::vector<Move>& moves) {
  std::vector<Signed> total{0};
  for (const Move& move : moves) total.push_back(total.back() + signed_count(move.size));
  return total;
}

// Returns for every k the condition for the first k prefetches to have started.
std::vector<Progress> running_condition(const std::vector<Move>& prefetches) {
  std::vector<Progress> condition{{}};
  for (const Move& move : prefetches) {
    const Progress& before = condition.back();
    condition.push_back({.runs = std::max(before.runs, move.after.runs),
                         .offloads = std::max(before.offloads, move.after.offloads)});
  }
  return condition;
}

class WorstCase {
 public:
  // `far`: bytes of state that are far when the step begins.
  WorstCase(const Plan& plan, Bytes far)
      : far_{signed_count(far)},
        offloaded_{running_total(plan.offloads)},
        prefetched_{running_total(plan.prefetches)},
        started_{running_condition(plan.prefetches)} {}

  // Considers `live` live bytes while `runs` runs have ended, for every possible number of started
  // prefetches.
  void consider(Bytes live, Position runs) {
    for (std::size_t k = sure_.prefetches; k < started_.size() && started_[k].runs <= runs; ++k) {
      const std::uint32_t away = std::max(sure_.offloads, started_[k].offloads);
      const Signed near = signed_count(live) - far_ - offloaded_[away] + prefetched_[k];
      if (near > peak_) at_ = runs;
      peak_ = std::max(peak_, near);
    }
  }

  // Notes that everything in `after` has ended from now on.
  void wait_for(const Progress& after) {
    sure_.prefetches = std::max(sure_.prefetches, after.prefetches);
    sure_.offloads =
        std::max({sure_.offloads, after.offloads, started_[sure_.prefetches].offloads});
  }

  [[nodiscard]] Bytes peak() const { return Bytes{static_cast<std::uint64_t>(peak_)}; }
  [[nodiscard]] Position at() const { return at_; }

 private:
  Signed far_;
  std::vector<Signed> offloaded_;
  std::vector<Signed> prefetched_;
  std::vector<Progress> started_;
  Progress sure_;
  Signed peak_ = 0;
  Position at_ = 0;
};

// Returns the bytes of blocks that live across the boundary before each run, and after the last.
std::vector<Bytes> live_between(const BlockSizes& block_sizes, std::size_t runs,
                                std::span<const Life> lives) {
  std::vector<Bytes> begins(runs + 1);
  std::vector<Bytes> ends(runs + 1);
  for (const Life& life : lives) {
    begins[life.begins_before_step() ? 0 : life.begin() + 1] += block_sizes.size(life.data);
    if (!life.outlives_step()) ends[life.last() + 1] += block_sizes.size(life.data);
  }
  std::vector<Bytes> result;
  Bytes live;
  for (std::size_t i = 0; i <= runs; ++i) result.push_back(live = live + begins[i] - ends[i]);
  return result;
}

}  // namespace

std::optional<Violation> check_residency(const TaskGraph& graph, const BlockSizes& block_sizes,
                                         const Plan& plan, std::span<const Life> lives) {
  std::vector<BlockResidency> blocks;
  blocks.reserve(graph.data.size());
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    blocks.emplace_back(graph, block_sizes, plan, DataId(i));
  }
  const auto assign = [&](const std::vector<Move>& moves, auto member) {
    for (std::uint32_t i = 0; i < moves.size(); ++i) {
      const auto data = static_cast<std::size_t>(moves[i].data);
      if (data >= blocks.size()) return false;
      (blocks[data].*member).push_back(i);
    }
    return true;
  };
  if (!assign(plan.offloads, &BlockResidency::offloads) ||
      !assign(plan.prefetches, &BlockResidency::prefetches)) {
    return Violation{"a move names a block that is not there"};
  }
  const StateHome home{graph, block_sizes, plan};
  std::vector<std::uint32_t> prefetched;  // by run, see BlockResidency::follow
  std::uint32_t max = 0;
  for (const TaskRun& run : plan.runs)
    prefetched.push_back(max = std::max(max, run.after.prefetches));
  for (const Life& life : lives) {
    auto& block = blocks[static_cast<std::size_t>(life.data)];
    if (auto violation = block.follow(life, prefetched, home)) return violation;
  }
  for (const BlockResidency& block : blocks) {
    if (auto violation = block.finish()) return violation;
  }
  return std::nullopt;
}

NearPeak worst_case_peak(const TaskGraph& graph, const BlockSizes& block_sizes, const Plan& plan,
                         std::span<const Life> lives) {
  const std::vector<Bytes> during = demand(graph, block_sizes, plan.runs, lives);
  const std::vector<Bytes> before = live_between(block_sizes, plan.runs.size(), lives);
  WorstCase worst{plan, StateHome{graph, block_sizes, plan}.far()};
  for (Position position = 0; position < plan.runs.size(); ++position) {
    worst.consider(before[position], position);
    worst.wait_for(plan.runs[position].after);
    worst.consider(during[position], position);
  }
  worst.consider(before.back(), static_cast<Position>(plan.runs.size()));
  return {.bytes = block_sizes.pinned() + worst.peak(), .at = worst.at()};
}

}  // namespace spillway::prefetch
