#include "prefetch/paging_model.h"

#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "prefetch/placement.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

double nanoseconds(um::Nanoseconds time) { return static_cast<double>(time.count()); }

// Pages of one slab of addresses, of which only so many are near.
class PagedSlab {
 public:
  PagedSlab(Bytes extent, Bytes pool, Bytes page, const LinkProfile& link)
      : pages_(extent / page), room_{pool / page}, page_{page}, link_{link} {}

  // Touches the addresses; returns how long that stalls, in nanoseconds.
  double touch(Bytes offset, Bytes size, bool writes) {
    double stall = 0;
    for (std::uint64_t i = offset / page_; i < (offset + size) / page_; ++i) {
      if (!pages_[i].is_near) stall += fault(i);
      if (writes) pages_[i].is_dirty = true;
    }
    return stall;
  }

  // Counts from now on.
  void reset_counts() { faults_ = fetched_ = written_back_ = 0; }
  [[nodiscard]] std::size_t faults() const { return faults_; }
  [[nodiscard]] Bytes fetched() const { return fetched_ * page_; }
  [[nodiscard]] Bytes written_back() const { return written_back_ * page_; }

 private:
  struct Page {
    bool is_near = false;
    bool is_dirty = false;
    bool has_far_copy = false;  // it was near before
  };

  double fault(std::uint64_t index) {
    double time = nanoseconds(link_.fault);
    if (near_.size() >= room_) time += evict();
    Page& page = pages_[index];
    if (page.has_far_copy) {
      time += nanoseconds(page_ / link_.prefetch);
      ++fetched_;
    }
    page = {.is_near = true, .is_dirty = !page.has_far_copy, .has_far_copy = page.has_far_copy};
    near_.push_back(index);
    ++faults_;
    return time;
  }

  double evict() {
    Page& page = pages_[near_.front()];
    near_.pop_front();
    const bool is_dirty = page.is_dirty;
    page = {.has_far_copy = true};
    if (!is_dirty) return 0;
    ++written_back_;
    return nanoseconds(page_ / link_.offload);
  }

  std::vector<Page> pages_;
  std::deque<std::uint64_t> near_;  // in the order in which they came
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
        occupancy_{graph, plan.page},
        placement_{place(graph, occupancy_, plan.runs, find_lives(graph, plan.runs))},
        slab_{placement_.extent, occupancy_.pool(plan.budget), plan.page, profile.link} {}

  // One step whose runs compute for `times`.
  PagedStep step(const std::vector<double>& times) {
    slab_.reset_counts();
    PagedStep result;
    double now = 0;
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      now += touch(i);
      const um::Nanoseconds begin{std::llround(now)};
      now += times[i];
      result.timeline.runs.push_back({.begin = begin, .end = um::Nanoseconds{std::llround(now)}});
    }
    result.faults = slab_.faults();
    result.fetched = slab_.fetched();
    result.written_back = slab_.written_back();
    return result;
  }

 private:
  double touch(std::size_t position) {
    const TaskRun& run = plan_.runs[position];
    const Task& task = graph_[run.task];
    double stall = 0;
    for (const DataId id : task.reads) stall += touch(id, false);
    for (const DataId id : task.writes) stall += touch(id, true);
    const Bytes workspace = occupancy_.workspace_size(task.algorithms[run.algorithm].workspace);
    return stall + slab_.touch(placement_.workspaces[position], workspace, true);
  }

  double touch(DataId id, bool writes) {
    const auto data = static_cast<std::size_t>(id);
    return slab_.touch(placement_.blocks[data], occupancy_.size(id), writes);
  }

  const TaskGraph& graph_;
  const Plan& plan_;
  Occupancy occupancy_;
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
