#include "prefetch/neighbourhood.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "prefetch/stalls.h"

namespace spillway::prefetch {
namespace {

constexpr std::uint32_t kNone = ~0U;

// Pieces of `length`, the last one shorter.
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

void add_unless_empty(Step step, std::vector<Step>& steps) {
  if (!step.empty() && std::ranges::find(steps, step) == steps.end()) {
    steps.push_back(std::move(step));
  }
}

Change fate_change(std::uint32_t index, Fate fate) {
  return {.what = Change::What::kFate, .index = index, .value = static_cast<std::uint32_t>(fate)};
}

}  // namespace

Neighbourhood::Neighbourhood(const DecisionSpace& space) : space_{space} {
  const std::vector<Recomputable>& blocks = space.droppable();
  by_cost_.resize(blocks.size());
  std::iota(by_cost_.begin(), by_cost_.end(), 0U);
  by_position_ = by_cost_;
  std::ranges::sort(by_position_, {}, [&](std::uint32_t i) { return blocks[i].data; });
  for (const std::uint32_t i : by_cost_) {
    const auto data = static_cast<std::size_t>(blocks[i].data);
    if (index_of_.size() <= data) index_of_.resize(data + 1, kNone);
    index_of_[data] = i;
  }
}

Step Neighbourhood::set_fate(const Decisions& from, const std::vector<std::uint32_t>& blocks,
                             Fate fate) const {
  Step step;
  for (const std::uint32_t i : blocks) {
    if (from.fates[i] != fate) step.push_back(fate_change(i, fate));
  }
  return step;
}

Step Neighbourhood::drop_cheapest(std::size_t count) const {
  Step step;
  for (std::size_t i = 0; i < by_cost_.size(); ++i) {
    step.push_back(fate_change(by_cost_[i], i < count ? Fate::kDrop : Fate::kKeep));
  }
  return step;
}

std::vector<Step> Neighbourhood::ranges(const Decisions& from, BlockOrder order,
                                        std::size_t length) const {
  std::vector<Step> steps;
  for (const auto& piece : pieces(order == BlockOrder::kByCost ? by_cost_ : by_position_, length)) {
    for (const Fate fate : {Fate::kDrop, Fate::kDropPerUse, Fate::kKeep}) {
      add_unless_empty(set_fate(from, piece, fate), steps);
    }
  }
  return steps;
}

std::vector<Step> Neighbourhood::algorithm_ranges(const Decisions& from, std::size_t length) const {
  std::vector<std::uint32_t> tasks;
  for (const TaskId id : space_.choosable()) tasks.push_back(static_cast<std::uint32_t>(id));
  std::vector<Step> steps;
  for (const auto& piece : pieces(tasks, length)) {
    Step first;
    Step fastest;
    for (const std::uint32_t task : piece) {
      const Change::What what = Change::What::kAlgorithm;
      const std::uint32_t fast = space_.start().algorithms[task];
      if (from.algorithms[task] != 0) first.push_back({.what = what, .index = task, .value = 0});
      if (from.algorithms[task] != fast) {
        fastest.push_back({.what = what, .index = task, .value = fast});
      }
    }
    add_unless_empty(std::move(first), steps);
    add_unless_empty(std::move(fastest), steps);
  }
  return steps;
}

std::vector<std::uint32_t> Neighbourhood::droppable_among(const std::vector<DataId>& blocks) const {
  std::vector<std::uint32_t> found;
  for (const DataId id : blocks) {
    const auto data = static_cast<std::size_t>(id);
    if (data < index_of_.size() && index_of_[data] != kNone) found.push_back(index_of_[data]);
  }
  return found;
}

std::vector<Step> Neighbourhood::against_stalls(const Decisions& from, const Plan& plan,
                                                const Timeline& timeline) const {
  constexpr std::size_t kStalls = 12;
  constexpr std::size_t kBlocks = 4;
  std::vector<Step> steps;
  for (const Stall& stall : longest_stalls(plan, timeline, kStalls)) {
    const TaskRun& run = plan.runs[stall.before];
    if (run.algorithm != 0) {
      steps.push_back({{.what = Change::What::kAlgorithm,
                        .index = static_cast<std::uint32_t>(run.task),
                        .value = 0}});
    }
    std::vector<std::uint32_t> blocks = droppable_among(stall.moving);
    add_unless_empty(set_fate(from, blocks, Fate::kDrop), steps);
    add_unless_empty(set_fate(from, blocks, Fate::kDropPerUse), steps);
    if (blocks.size() > kBlocks) blocks.resize(kBlocks);
    for (const std::uint32_t block : blocks) {
      for (const Fate fate : {Fate::kDrop, Fate::kDropPerUse, Fate::kKeep}) {
        add_unless_empty(set_fate(from, {block}, fate), steps);
      }
    }
  }
  return steps;
}

Step Neighbourhood::random(const Decisions& from, std::mt19937_64& generator) const {
  const std::size_t blocks = by_cost_.size();
  const std::size_t tasks = space_.choosable().size();
  Step step;
  for (std::uint64_t left = generator() % 3 + 1; left > 0 && blocks + tasks > 0; --left) {
    const std::uint64_t drawn = generator() % (blocks + tasks);
    if (drawn < blocks) {
      const auto index = static_cast<std::uint32_t>(drawn);
      const auto shift = static_cast<std::uint32_t>(generator() % 2 + 1);
      const std::uint32_t now = static_cast<std::uint32_t>(from.fates[index]);
      step.push_back(fate_change(index, static_cast<Fate>((now + shift) % 3)));
    } else {
      const auto task = static_cast<std::uint32_t>(space_.choosable()[drawn - blocks]);
      const std::uint32_t other = from.algorithms[task] == 0 ? space_.start().algorithms[task] : 0;
      step.push_back({.what = Change::What::kAlgorithm, .index = task, .value = other});
    }
  }
  return step;
}

}  // namespace spillway::prefetch
