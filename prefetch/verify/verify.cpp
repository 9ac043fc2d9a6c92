#include "prefetch/verify/verify.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/far_update.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/state_home.h"
#include "prefetch/task_graph.h"
#include "prefetch/verify/dataflow.h"
#include "prefetch/verify/residency_check.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

std::optional<Violation> check_queue(const TaskGraph& graph, const Plan& plan) {
  std::vector<bool> has_run(graph.exchanges.size(), false);
  for (std::size_t place = 0; place < plan.exchanges.size(); ++place) {
    const ExchangeRun& run = plan.exchanges[place];
    if (run.exchange >= has_run.size()) {
      return Violation{"the plan names an exchange that is not there"};
    }
    const std::string& name = graph.exchanges[run.exchange].name;
    if (has_run[run.exchange]) return Violation{name + " is exchanged twice"};
    if (run.exchange != place) return Violation{name + " is exchanged out of order between ranks"};
    if (run.after_runs > plan.runs.size()) return Violation{name + " waits for ever"};
    has_run[run.exchange] = true;
  }
  for (std::size_t e = 0; e < has_run.size(); ++e) {
    if (!has_run[e]) return Violation{graph.exchanges[e].name + " is never exchanged"};
    for (const auto* const ids : {&graph.exchanges[e].blocks, &graph.exchanges[e].waiting}) {
      const auto far = std::ranges::find_if(*ids, [&](DataId id) { return graph[id].may_leave(); });
      if (far == ids->end()) continue;
      return Violation{graph[*far].name + " may be far while ranks exchange it"};
    }
  }
  return std::nullopt;
}

class RunCheck {
 public:
  RunCheck(const TaskGraph& graph, const Plan& plan)
      : graph_{graph},
        plan_{plan},
        exchange_{exchange_of_blocks(graph)},
        place_(graph.exchanges.size()) {
    for (std::uint32_t i = 0; i < plan.exchanges.size(); ++i) {
      place_[plan.exchanges[i].exchange] = i;
      const std::uint32_t before = ready_.back();
      ready_.push_back(std::max(before, plan.exchanges[i].after_runs));
    }
  }

  // Requires: called for all runs in order.
  std::optional<Violation> check(std::uint32_t position) {
    const TaskRun& run = plan_.runs[position];
    const Task& task = graph_[run.task];
    awaited_ = std::max(awaited_, run.after_exchanges);
    if (awaited_ >= ready_.size() || ready_[awaited_] > position) {
      return Violation{task.name + " waits for ever for an exchange between ranks"};
    }
    std::optional<Violation> violation;
    for_each_operand(task, [&](DataId id) {
      if (violation || is_sound(run.task, id, position)) return;
      violation =
          Violation{task.name + " uses " + graph_[id].name + " while ranks may exchange it"};
    });
    return violation;
  }

 private:
  [[nodiscard]] bool is_sound(TaskId task, DataId id, std::uint32_t position) const {
    const std::uint32_t e = exchange_[static_cast<std::size_t>(id)];
    if (e == 0) return true;
    const std::uint32_t place = place_[e - 1];
    const bool makes_it = task <= graph_.exchanges[e - 1].ready;
    return makes_it ? position < plan_.exchanges[place].after_runs : awaited_ > place;
  }

  const TaskGraph& graph_;
  const Plan& plan_;
  std::vector<std::uint32_t> exchange_;  // by block, counted from 1
  std::vector<std::uint32_t> place_;     // by exchange: place in the plan's queue
  std::vector<std::uint32_t> ready_{0};  // by k: runs that have ended when the first k have begun
  std::uint32_t awaited_ = 0;            // by the runs so far
};

// Checks that each exchange of `graph` takes place once, when its gradients are complete and near.
// No run may use them meanwhile, or deadlock on an exchange.
// Complexity: O(runs with their operands).
std::optional<Violation> check_exchanges(const TaskGraph& graph, const Plan& plan) {
  if (auto violation = check_queue(graph, plan)) return violation;
  const bool waits = std::ranges::any_of(plan.runs, &TaskRun::after_exchanges);
  if (graph.exchanges.empty() && !waits) return std::nullopt;
  RunCheck check{graph, plan};
  for (std::uint32_t p = 0; p < plan.runs.size(); ++p) {
    if (auto violation = check.check(p)) return violation;
  }
  return std::nullopt;
}

// The use of blocks by tasks.
struct Touched {
  std::vector<bool> used;
  std::vector<bool> written;
};

Touched touched_by_tasks(const TaskGraph& graph) {
  Touched touched{.used = std::vector<bool>(graph.data.size(), false),
                  .written = std::vector<bool>(graph.data.size(), false)};
  for (const Task& task : graph.tasks) {
    for (const DataId id : task.reads) touched.used[static_cast<std::size_t>(id)] = true;
    for (const auto* const writes : {&task.writes, &task.updates_once}) {
      for (const DataId id : *writes) {
        touched.used[static_cast<std::size_t>(id)] = true;
        touched.written[static_cast<std::size_t>(id)] = true;
      }
    }
  }
  return touched;
}

std::optional<Violation> check_blocks(const TaskGraph& graph, const BlockSizes& block_sizes,
                                      const FarUpdate& update, const StateHome& home,
                                      const Touched& touched) {
  const auto is_far = [&](DataId id) {
    const std::vector<bool>& pages = home.far_pages(id);
    return !pages.empty() && std::ranges::all_of(pages, [](bool far) { return far; });
  };
  if (touched.written[static_cast<std::size_t>(update.parameters)]) {
    return Violation{graph[update.parameters].name + " is written near and by " + update.name};
  }
  for (const DataId id : {update.gradient, update.parameters}) {
    if (!is_far(id)) {
      return Violation{graph[id].name + " is not far when " + update.name + " is to use it there"};
    }
  }
  for (const DataId id : update.numbers) {
    if (!block_sizes.is_movable(id)) {
      return Violation{graph[id].name + " is too small a block to be far for " + update.name};
    }
    if (touched.used[static_cast<std::size_t>(id)]) {
      return Violation{graph[id].name + " is used near and by " + update.name};
    }
  }
  return std::nullopt;
}

// Checks that the far side runs each far update once, when all its inputs are far and no task
// reads its blocks. Its gradient and its parameters have left for the last time, and are far when
// the step begins and ends. Tasks only read the parameters, and do not use the optimizer state.
//
// Requires: the plan passed check_residency().
std::optional<Violation> check_far_runs(const TaskGraph& graph, const BlockSizes& block_sizes,
                                        const Plan& plan) {
  std::vector<bool> has_run(graph.far_updates.size(), false);
  for (const FarRun& run : plan.far_runs) {
    if (run.update >= has_run.size())
      return Violation{"a far run names an update that is not there"};
    if (has_run[run.update]) return Violation{graph.far_updates[run.update].name + " runs twice"};
    has_run[run.update] = true;
  }
  for (std::size_t u = 0; u < has_run.size(); ++u) {
    if (!has_run[u]) return Violation{graph.far_updates[u].name + " never runs"};
  }
  if (plan.far_runs.empty()) return std::nullopt;
  const StateHome home{graph, block_sizes, plan};
  const Touched touched = touched_by_tasks(graph);
  const std::vector<Progress> conditions = far_run_conditions(graph, plan);
  const Progress all{.runs = static_cast<std::uint32_t>(plan.runs.size()),
                     .offloads = static_cast<std::uint32_t>(plan.offloads.size()),
                     .prefetches = static_cast<std::uint32_t>(plan.prefetches.size())};
  for (const FarRun& run : plan.far_runs) {
    const FarUpdate& update = graph.far_updates[run.update];
    if (auto violation = check_blocks(graph, block_sizes, update, home, touched)) {
      return violation;
    }
    if (!run.after.reaches(conditions[run.update])) {
      return Violation{update.name + " does not wait for what it uses to be far"};
    }
    if (!all.reaches(run.after)) return Violation{update.name + " waits for ever"};
  }
  return std::nullopt;
}

// Executes the conditions alone: each queue proceeds as far as it can, until all have ended or none
// can proceed.
std::optional<Violation> check_progress(const Plan& plan) {
  Progress now;
  const auto advance = [&now](const auto& queue, std::uint32_t Progress::*count) {
    const std::uint32_t before = now.*count;
    while (now.*count < queue.size() && now.reaches(queue[now.*count].after)) ++(now.*count);
    return now.*count != before;
  };
  bool moved = true;
  while (moved) {
    moved = advance(plan.runs, &Progress::runs);
    moved = advance(plan.offloads, &Progress::offloads) || moved;
    moved = advance(plan.prefetches, &Progress::prefetches) || moved;
  }
  if (now.runs == plan.runs.size() && now.offloads == plan.offloads.size() &&
      now.prefetches == plan.prefetches.size()) {
    return std::nullopt;
  }
  return Violation{"the plan waits for ever after run " + std::to_string(now.runs) + ", offload " +
                   std::to_string(now.offloads) + " and prefetch " +
                   std::to_string(now.prefetches)};
}

// A wait for an offload counts on its room, so it must include the block's last readers, which the
// end of the transfer alone does not guarantee.
std::optional<Violation> check_room(const TaskGraph& graph, const Plan& plan) {
  std::vector<std::uint32_t> free_after{0};  // by number of ended offloads
  for (const Move& move : plan.offloads) {
    const std::uint32_t read_on = move.free_after > move.after.runs ? move.free_after : 0;
    free_after.push_back(std::max(free_after.back(), read_on));
  }
  for (std::uint32_t p = 0; p < plan.runs.size(); ++p) {
    if (free_after[plan.runs[p].after.offloads] > p) {
      return Violation{graph[plan.runs[p].task].name + " counts on the room of a block in use"};
    }
  }
  for (const Move& move : plan.prefetches) {
    if (move.is_clean || move.free_after > 0) {
      return Violation{"a prefetch of " + graph[move.data].name +
                       " is clean or read on, as only an offload can be"};
    }
    if (free_after[move.after.offloads] > move.after.runs) {
      return Violation{"a prefetch of " + graph[move.data].name +
                       " counts on the room of a block in use"};
    }
  }
  return std::nullopt;
}

std::variant<Verified, Violation> verify_on_demand(const TaskGraph& graph,
                                                   const BlockSizes& block_sizes,
                                                   const Plan& plan) {
  if (!plan.offloads.empty() || !plan.prefetches.empty()) {
    return Violation{"a plan that pages on demand has moves"};
  }
  if (!graph.far_updates.empty()) {
    return Violation{"a plan that pages on demand updates nothing on the far side"};
  }
  if (!graph.exchanges.empty()) {
    return Violation{"a plan that pages on demand exchanges nothing between ranks"};
  }
  if (block_sizes.pinned() > plan.budget) {
    return Violation{"what is always near does not fit in the budget of " +
                     um::to_string(plan.budget)};
  }
  const std::vector<Bytes> sets = working_sets(graph, block_sizes, plan.runs);
  const auto largest = std::ranges::max_element(sets);
  if (largest != sets.end() && *largest > block_sizes.pool(plan.budget)) {
    const TaskRun& run = plan.runs[static_cast<std::size_t>(largest - sets.begin())];
    return Violation{graph[run.task].name + " alone does not fit in the budget"};
  }
  return Verified{plan.budget};
}

}  // namespace

std::variant<Verified, Violation> verify(const TaskGraph& graph, const Plan& plan) {
  if (plan.graph != fingerprint(graph))
    return Violation{"the plan was made for another task graph"};
  if (!std::has_single_bit(plan.page.count())) return Violation{"the page is no power of two"};
  if (plan.page < kSmallestPage || plan.page > kLargestPage) {
    return Violation{"the page is smaller than 4 KiB or larger than 2 MiB"};
  }
  if (auto violation = check_dataflow(graph, plan.runs, plan.page)) return *violation;
  if (auto violation = check_progress(plan)) return *violation;
  if (auto violation = check_exchanges(graph, plan)) return *violation;
  const BlockSizes block_sizes{graph, plan.page};
  if (plan.residency == Residency::kOnDemand) return verify_on_demand(graph, block_sizes, plan);
  const std::vector<Life> lives = find_lives(graph, plan.runs);
  if (auto violation = check_residency(graph, block_sizes, plan, lives)) return *violation;
  if (auto violation = check_far_runs(graph, block_sizes, plan)) return *violation;
  if (auto violation = check_room(graph, plan)) return *violation;
  const NearPeak peak = worst_case_peak(graph, block_sizes, plan, lives);
  const Bytes room = block_sizes.pinned() + block_sizes.pool(plan.budget);
  if (peak.bytes > room || block_sizes.pinned() > plan.budget) {
    const std::string when = peak.at == plan.runs.size()
                                 ? "at the end"
                                 : "when " + graph[plan.runs[peak.at].task].name + " (run " +
                                       std::to_string(peak.at) + ") begins";
    return Violation{"the plan may use " + um::to_string(peak.bytes) + " of near memory " + when +
                     ", more than its budget of " + um::to_string(plan.budget)};
  }
  return Verified{peak.bytes};
}

}  // namespace spillway::prefetch
