#include "prefetch/simulate/paging_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/slab_placement.h"
#include "um/error.h"

namespace spillway::prefetch {

namespace {

using um::Bytes;

// A run's access to its pages.
enum class Touch { kRead, kUpdate, kOverwrite };

// Returns the number of pages. Throws if their states would take too much memory.
std::uint64_t expect_few_pages(Bytes extent, Bytes page) {
  constexpr std::uint64_t kMostPages = 1U << 25U;
  const std::uint64_t pages = extent / page;
  if (pages <= kMostPages) return pages;
  throw um::Error{"the page faults of a step of " + um::to_string(extent) + " in pages of " +
                  um::to_string(page) + " cannot be predicted: they are " + std::to_string(pages) +
                  " pages, and at most " + std::to_string(kMostPages) +
                  " are followed; use another planner than on-demand, or a smaller batch"};
}

// Pages of one slab of addresses, of limited number near.
class PagedSlab {
 public:
  PagedSlab(Bytes extent, Bytes pool, Bytes page, const LinkProfile& link)
      : pages_(expect_few_pages(extent, page)), room_{pool / page}, page_{page}, link_{link} {}

  // Lets the running task touch the addresses; returns its stall in nanoseconds.
  double touch(Bytes offset, Bytes size, Touch how) {
    double stall = 0;
    for (std::uint64_t i = offset / page_; i < (offset + size) / page_; ++i) {
      Page& page = pages_[i];
      if (!page.is_near) stall += fault(page, how);
      if (how != Touch::kRead) page.is_dirty = true;
      if (!page.is_held && !page.place) enqueue(i);
    }
    return stall;
  }

  // Declares that the next task will touch the addresses.
  void begin_use(Bytes offset, Bytes size) {
    if (!link_.faults.evict_by_use) return;
    for (std::uint64_t i = offset / page_; i < (offset + size) / page_; ++i) hold(i);
  }

  // Ends the running task.
  void end_use() {
    for (const std::uint64_t i : held_) enqueue(i);
    held_.clear();
  }

  // Restarts the counts.
  void reset_counts() { faults_ = fetched_ = written_back_ = 0; }
  [[nodiscard]] std::size_t faults() const { return faults_; }
  [[nodiscard]] Bytes fetched() const { return fetched_ * page_; }
  [[nodiscard]] Bytes written_back() const { return written_back_ * page_; }

 private:
  using Order = std::list<std::uint64_t>;
  struct Page {
    bool is_near = false;
    bool is_dirty = false;
    bool has_far_copy = false;             // it was near before
    bool is_held = false;                  // by the running task
    std::optional<Order::iterator> place;  // in order_, if it may leave
  };

  double fault(Page& page, Touch how) {
    double time = um::to_double(link_.faults.time);
    if (near_ >= room_) time += evict();
    const bool is_spared = link_.faults.spare_overwritten && how == Touch::kOverwrite;
    if (page.has_far_copy && !is_spared) {
      time += um::to_double(page_ / link_.prefetch);
      ++fetched_;
    }
    page.is_near = true;
    page.is_dirty = !page.has_far_copy;
    ++near_;
    ++faults_;
    return time;
  }

  double evict() {
    um::expects(!order_.empty(), "a run fits in near memory");
    Page& page = pages_[order_.front()];
    order_.pop_front();
    const bool is_dirty = page.is_dirty;
    page = {.has_far_copy = true};
    --near_;
    if (!is_dirty) return 0;
    ++written_back_;
    return um::to_double(page_ / link_.offload);
  }

  // Keeps the page near until the running task ends.
  void hold(std::uint64_t index) {
    Page& page = pages_[index];
    if (page.is_held) return;
    if (page.place) order_.erase(*page.place);
    page.place.reset();
    page.is_held = true;
    held_.push_back(index);
  }

  void enqueue(std::uint64_t index) {
    pages_[index].place = order_.insert(order_.end(), index);
    pages_[index].is_held = false;
  }

  std::vector<Page> pages_;
  Order order_;                      // eviction order
  std::vector<std::uint64_t> held_;  // in the order of the operands
  std::uint64_t near_ = 0;
  std::uint64_t room_;
  Bytes page_;
  const LinkProfile& link_;
  std::size_t faults_ = 0;
  std::uint64_t fetched_ = 0;
  std::uint64_t written_back_ = 0;
};

class PagedSteps {
 public:
  PagedSteps(const TaskGraph& graph, const Plan& plan, const Profile& profile)
      : graph_{graph},
        plan_{plan},
        block_sizes_{graph, plan.page},
        placement_{place(graph, block_sizes_, plan.runs, find_lives(graph, plan.runs),
                         place_state(graph, block_sizes_))},
        slab_{placement_.extent, block_sizes_.pool(plan.budget), plan.page, profile.link} {}

  // Simulates one step with the given compute times of its runs.
  PagedStep step(const std::vector<double>& times) {
    slab_.reset_counts();
    PagedStep result;
    double now = 0;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      const RunFaults before = counts();
      const double stall = touch(i);
      result.timeline.faults.push_back(since(before, stall));
      now += stall;
      const um::Nanoseconds begin{std::llround(now)};
      now += times[i];
      slab_.end_use();
      result.timeline.runs.push_back({.begin = begin, .end = um::Nanoseconds{std::llround(now)}});
    }
    result.faults = slab_.faults();
    result.fetched = slab_.fetched();
    result.written_back = slab_.written_back();
    return result;
  }

 private:
  [[nodiscard]] RunFaults counts() const {
    return {
        .faults = slab_.faults(), .fetched = slab_.fetched(), .written_back = slab_.written_back()};
  }
  [[nodiscard]] RunFaults since(const RunFaults& before, double stall) const {
    return {.faults = slab_.faults() - before.faults,
            .fetched = slab_.fetched() - before.fetched,
            .written_back = slab_.written_back() - before.written_back,
            .time = um::Nanoseconds{std::llround(stall)}};
  }

  double touch(std::size_t position) {
    const TaskRun& run = plan_.runs[position];
    const Task& task = graph_[run.task];
    const Bytes workspace = block_sizes_.workspace_size(task.algorithms[run.algorithm].workspace);
    for (const DataId id : operands(task)) slab_.begin_use(offset(id), block_sizes_.size(id));
    slab_.begin_use(placement_.workspaces[position], workspace);
    double stall = 0;
    for (const DataId id : task.reads) stall += touch(id, Touch::kRead);
    for (const DataId id : task.writes) stall += touch(id, kind_of_write(task, id));
    return stall + slab_.touch(placement_.workspaces[position], workspace, Touch::kOverwrite);
  }

  double touch(DataId id, Touch how) { return slab_.touch(offset(id), block_sizes_.size(id), how); }

  [[nodiscard]] Bytes offset(DataId id) const {
    return placement_.blocks[static_cast<std::size_t>(id)];
  }

  static Touch kind_of_write(const Task& task, DataId id) {
    return std::ranges::find(task.reads, id) != task.reads.end() ? Touch::kUpdate
                                                                 : Touch::kOverwrite;
  }

  const TaskGraph& graph_;
  const Plan& plan_;
  BlockSizes block_sizes_;
  Placement placement_;
  PagedSlab slab_;
};

}  // namespace

PagedStep page_on_demand(const TaskGraph& graph, const Plan& plan, const Profile& profile,
                         const SimulateOptions& options) {
  um::expects(plan.residency == Residency::kOnDemand, "only plans without hints page on demand");
  const std::vector<double> times = run_times(plan, profile, options);
  PagedSteps steps{graph, plan, profile};
  static_cast<void>(steps.step(times));  // the first one finds near memory empty
  return steps.step(times);
}

}  // namespace spillway::prefetch
