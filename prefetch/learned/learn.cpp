#include "prefetch/learned/learn.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/home_search.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/strategies.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using Kind = RecordedEvent::Kind;

constexpr Position kNoTask = ~0U;

// An iteration's use of one block.
struct Use {
  um::Bytes size;
  Position first = kNoTask;  // task
  Position last = kNoTask;   // task
  Position freed = kNoTask;  // the task that is running when it is freed; kNoTask: never
  bool is_allocated = false;
  bool is_read_first = false;  // written outside the cycle's declared touches
  bool is_carried = false;  // has content when the cycle begins, and is freed and allocated in it
};

// Events of a cycle in order, over all its iterations.
struct CycleEvent {
  Kind kind;
  Touch touch;  // with the block's name in the cycle
  std::size_t iteration;
  std::size_t index;  // among the iteration's
};

std::vector<CycleEvent> events_of(const RecordedCycles& recorded) {
  std::vector<CycleEvent> events;
  for (std::size_t i = 0; i < recorded.cycle; ++i) {
    const std::vector<RecordedEvent>& all = recorded.iterations[i].events();
    for (std::size_t j = 0; j < all.size(); ++j) {
      events.push_back({.kind = all[j].kind, .touch = all[j].touch, .iteration = i, .index = j});
      events.back().touch.block.born %= recorded.cycle;
    }
  }
  return events;
}

template <typename Value>
Value median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class StepMaker {
 public:
  StepMaker(const RecordedCycles& recorded, um::Bytes page, const GroupingOptions& grouping)
      : recorded_{recorded}, events_{events_of(recorded)}, page_{page}, grouping_{grouping} {}

  std::variant<LearnedStep, NotLearned> make(const LinkProfile& link) {
    if (auto refused = follow_events()) return std::move(*refused);
    if (begins_.empty()) return NotLearned{"the iteration touches no block"};
    add_blocks();
    add_tasks();
    add_profile(link);
    return std::move(step_);
  }

 private:
  // Returns the time of a touch, or of the end, of the cycle that begins with recording `from`.
  [[nodiscard]] um::Nanoseconds moment(std::size_t event, std::size_t from) const {
    if (event == events_.size()) return recorded_.iterations[from + recorded_.cycle - 1].end();
    const CycleEvent& at = events_[event];
    return recorded_.iterations[from + at.iteration].events()[at.index].touch.at;
  }
  // Returns the median over cycles of the gap between two events.
  [[nodiscard]] um::Nanoseconds gap(std::size_t from, std::size_t to) const {
    std::vector<um::Nanoseconds> gaps;
    for (std::size_t i = 0; i < recorded_.iterations.size(); i += recorded_.cycle) {
      gaps.push_back(std::max(um::Nanoseconds{1}, moment(to, i) - moment(from, i)));
    }
    return median(std::move(gaps));
  }

  std::optional<NotLearned> follow_events() {
    step_.ends.resize(recorded_.cycle);
    step_.first = recorded_.iterations.front().iteration() % recorded_.cycle;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Touch& touch = events_[i].touch;
      Use& use = uses_[touch.block];
      if (events_[i].kind == Kind::kTouch) {
        add_touch(i, use);
      } else if (events_[i].kind == Kind::kAllocate) {
        use.is_carried = use.first != kNoTask || use.freed != kNoTask;
        use.is_allocated = true;
        use.size = touch.size;
      } else {
        use.freed = begins_.empty() ? 0 : task();
      }
    }
    std::size_t end = 0;
    for (std::size_t& each : step_.ends) end = each = std::max(end, each);
    for (const auto& [name, use] : uses_) {
      if (use.is_allocated && use.freed == kNoTask) {
        return NotLearned{"the iteration leaves behind a block that it allocated, for ever"};
      }
      if (!use.is_allocated && use.freed != kNoTask) {
        return NotLearned{"the iteration frees a block that none like it has allocated"};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Position task() const { return static_cast<Position>(begins_.size() - 1); }

  void add_touch(std::size_t event, Use& use) {
    const Touch& touch = events_[event].touch;
    use.size = touch.size;
    if (!joins_last(event, use)) {
      begins_.push_back(event);
      in_task_ = {};
    }
    if (use.last != task() || use.first == kNoTask) in_task_ += um::round_up(use.size, page_);
    if (use.first == kNoTask) {
      use.first = task();
      use.is_read_first = touch.access == um::Access::kRead;
    }
    use.last = task();
    step_.touches.push_back({.block = touch.block, .access = touch.access, .task = task()});
    step_.ends[events_[event].iteration] = step_.touches.size();
  }

  [[nodiscard]] bool joins_last(std::size_t event, const Use& use) const {
    if (begins_.empty() || events_[event - 1].kind != Kind::kTouch) return false;
    if (events_[event].iteration != events_[event - 1].iteration) return false;
    const um::Bytes more =
        use.first != kNoTask && use.last == task() ? um::Bytes{} : um::round_up(use.size, page_);
    return gap(event - 1, event) <= grouping_.together && in_task_ + more <= grouping_.max;
  }

  [[nodiscard]] static bool is_tensor(const Use& use) {
    return use.is_allocated && !use.is_carried && !use.is_read_first && use.freed == use.last;
  }

  void add_blocks() {
    for (const auto& [name, use] : uses_) {
      if (use.first == kNoTask) continue;
      const bool intervals = use.size < page_;
      step_.blocks[name] = step_.graph.add(
          DataBlock{.name = (name.is_fresh ? "allocation " : "block ") + std::to_string(name.id),
                    .size = use.size,
                    .kind = is_tensor(use) && !intervals ? DataKind::kTensor : DataKind::kState,
                    .is_offloadable = !is_tensor(use) && !intervals});
    }
  }

  void add_tasks() {
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      step_.graph.add(Task{.name = "task " + std::to_string(i)});
    }
    for (const ExpectedTouch& touch : step_.touches) {
      Task& task = step_.graph.tasks[touch.task];
      const DataId data = step_.blocks.at(touch.block);
      const bool is_first =
          step_.graph[data].kind == DataKind::kTensor && uses_.at(touch.block).first == touch.task;
      const auto add = [data](std::vector<DataId>& list) {
        if (std::ranges::count(list, data) == 0) list.push_back(data);
      };
      if (!is_first) add(task.reads);
      if (is_first || touch.access != um::Access::kRead) add(task.writes);
    }
  }

  void add_profile(const LinkProfile& link) {
    step_.profile = {.source = "recorded iterations",
                     .graph = fingerprint(step_.graph),
                     .durations = {},
                     .link = link};
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::size_t next = i + 1 < begins_.size() ? begins_[i + 1] : events_.size();
      step_.profile.durations.push_back({gap(begins_[i], next)});
    }
  }

  const RecordedCycles& recorded_;
  std::vector<CycleEvent> events_;
  um::Bytes page_;
  GroupingOptions grouping_;
  std::map<BlockName, Use> uses_;
  std::vector<std::size_t> begins_;  // by task: the event of its first touch
  um::Bytes in_task_;                // blocks of the last task, in whole pages
  LearnedStep step_;
};

class LookAhead {
 public:
  explicit LookAhead(const Problem& problem)
      : problem_{problem},
        block_sizes_{problem.graph, problem.page},
        pool_{block_sizes_.pool(problem.budget)},
        runs_{runs_in_order(problem.graph)},
        lives_{find_lives(problem.graph, runs_)},
        demand_{demand(problem.graph, block_sizes_, runs_, lives_)},
        order_{by_idle_time(block_sizes_, lives_)} {}

  std::optional<EvaluatedPlan> search() {
    if (block_sizes_.pinned() > problem_.budget) return std::nullopt;
    constexpr std::array<std::uint64_t, 6> kSixteenthsFree{0, 1, 2, 4, 6, 8};
    for (const std::uint64_t free : kSixteenthsFree) {
      const um::Bytes look{pool_.count() / 16 * free};
      try_far_between_steps(pool_ - um::round_down(look, problem_.page));
    }
    return std::move(best_);
  }

 private:
  void try_far_between_steps(um::Bytes idle_pool) {
    constexpr std::size_t kGrid = 16;
    CoverOptions options{
        .chunk = problem_.chunk, .whole_blocks = problem_.whole_blocks, .homes = {}};
    options.homes.resize(problem_.graph.data.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i <= kGrid; ++i) {
      for (; next < order_.size() * i / kGrid; ++next) {
        options.homes[static_cast<std::size_t>(order_[next])].far = block_sizes_.size(order_[next]);
      }
      consider(options, idle_pool);
    }
  }

  void consider(const CoverOptions& options, um::Bytes idle_pool) {
    std::vector<FarInterval> far_intervals =
        far_intervals_from_start(block_sizes_, lives_, options);
    const auto chosen =
        cover(block_sizes_, without(demand_, far_intervals), lives_, idle_pool, options);
    if (!chosen) return;
    far_intervals.insert(far_intervals.end(), chosen->begin(), chosen->end());
    EvaluatedPlan now{.plan = empty_plan(problem_, runs_)};
    add_moves(return_early(far_intervals, demand_, pool_), problem_.profile.link, now.plan);
    now.makespan = simulate(now.plan, problem_.profile).makespan();
    if (!best_ || now.makespan < best_->makespan) best_ = std::move(now);
  }

  const Problem& problem_;
  const BlockSizes block_sizes_;
  const um::Bytes pool_;
  const std::vector<TaskRun> runs_;
  const std::vector<Life> lives_;
  const std::vector<um::Bytes> demand_;
  const std::vector<DataId> order_;
  std::optional<EvaluatedPlan> best_;
};

// Plans a learned step by offloading only. Each task has one algorithm and cannot be recomputed, so
// `joint` reduces to the cover of Beaumont et al. (section 4), with state that may be far between
// cycles.
//
// The cover makes as little far as possible, so near memory is always full and a prefetch must wait
// for an offload: both transfers lie between two tasks. Some of the pool is therefore kept free for
// early prefetches: covers for several smaller pools are scheduled in the whole pool, and the
// fastest is taken. (The paper's model does not need this choice: its transfers of any part take
// effect at once.)
//
// State that is far between cycles: the best number on a grid of the blocks that are idle longest
// across cycles, per pool. Pure. Complexity: that of several dozen plans.
std::variant<Plan, Infeasible> look_ahead_plan(const Problem& problem) {
  auto best = LookAhead{problem}.search();
  if (!best) return infeasible(problem);
  best->plan.planner = "look-ahead";
  return std::move(best->plan);
}

// Small budgets need small chunks: a sixteenth of near memory can be exchanged at a time.
um::Bytes choose_chunk(const LearnOptions& options) {
  const um::Bytes sixteenth{options.budget.count() / 16};
  return std::max(options.page,
                  std::min(chunk_for(options.link), um::round_down(sixteenth, options.page)));
}

}  // namespace

std::variant<LearnedStep, NotLearned> learn_step(const RecordedCycles& recorded,
                                                 const LinkProfile& link, um::Bytes page,
                                                 const GroupingOptions& grouping) {
  um::expects(recorded.cycle > 0 && !recorded.iterations.empty() &&
                  recorded.iterations.size() % recorded.cycle == 0,
              "whole cycles are learned");
  return StepMaker{recorded, page, grouping}.make(link);
}

std::variant<ReplayPlan, NotLearned> learn(const RecordedCycles& recorded,
                                           const LearnOptions& options) {
  const GroupingOptions grouping{.together = options.together,
                                 .max = um::Bytes{options.budget.count() / 2}};
  auto made = learn_step(recorded, options.link, options.page, grouping);
  if (auto* refused = std::get_if<NotLearned>(&made)) return std::move(*refused);
  ReplayPlan replay_plan{.step = std::move(std::get<LearnedStep>(made))};
  const TaskGraph& graph = replay_plan.step.graph;
  const Profile& profile = replay_plan.step.profile;
  const Problem problem{.graph = graph,
                        .profile = profile,
                        .budget = options.budget,
                        .page = options.page,
                        .chunk = choose_chunk(options)};
  const auto near = plan_on_demand(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&near)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  auto planned = look_ahead_plan(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&planned)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  replay_plan.plan = std::move(std::get<Plan>(planned));
  const auto verdict = verify(graph, replay_plan.plan);
  if (const auto* violation = std::get_if<Violation>(&verdict)) {
    return NotLearned{"the plan does not hold: " + violation->reason};
  }
  replay_plan.computing = compute_time(profile, replay_plan.plan.runs);
  replay_plan.planned = simulate(graph, replay_plan.plan, profile).makespan();
  replay_plan.on_demand = simulate(graph, std::get<Plan>(near), profile).makespan();
  if (replay_plan.planned >= replay_plan.on_demand) {
    return NotLearned{"page faults alone are as fast as the best plan"};
  }
  return replay_plan;
}

}  // namespace spillway::prefetch
