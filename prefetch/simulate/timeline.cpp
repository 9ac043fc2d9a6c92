#include "prefetch/simulate/timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/state_home.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// Returns the purpose of each block.
std::vector<NearPurpose> find_purposes(const TaskGraph& graph) {
  std::vector<NearPurpose> purposes(graph.data.size(), NearPurpose::kGradient);
  for (const Task& task : graph.tasks) {
    const bool is_forward = task.phase == Phase::kForward;
    for (const DataId id : task.writes) {
      if (is_forward) purposes[static_cast<std::size_t>(id)] = NearPurpose::kPassing;
    }
    for (const DataId id : task.reads) {
      NearPurpose& purpose = purposes[static_cast<std::size_t>(id)];
      if (!is_forward && purpose == NearPurpose::kPassing) purpose = NearPurpose::kSaved;
    }
  }
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].kind == DataKind::kState) purposes[i] = NearPurpose::kState;
  }
  return purposes;
}

class Changes {
 public:
  Changes(const TaskGraph& graph, const Plan& plan, const Timeline& timeline)
      : graph_{graph},
        plan_{plan},
        timeline_{timeline},
        block_sizes_{graph, plan.page},
        purposes_{find_purposes(graph)} {}

  std::vector<NearChange> find() {
    changes_.push_back({.bytes = signed_count(block_sizes_.pinned())});
    add_lives();
    add_far_between_steps();
    add_workspaces();
    add_moves();
    std::ranges::stable_sort(changes_, [](const NearChange& a, const NearChange& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    return std::move(changes_);
  }

 private:
  void add(um::Nanoseconds time, DataId data, std::int64_t bytes) {
    const auto holder = static_cast<std::uint32_t>(data);
    changes_.push_back(
        {.time = time, .bytes = bytes, .purpose = purposes_[holder], .holder = holder});
  }

  void add_lives() {
    for (const Life& life : find_lives(graph_, plan_.runs)) {
      const std::int64_t size = signed_count(block_sizes_.size(life.data));
      if (size == 0) continue;
      const um::Nanoseconds begin =
          life.begins_before_step() ? um::Nanoseconds{0} : timeline_.runs[life.begin()].begin;
      add(begin, life.data, size);
      if (!life.outlives_step()) add(timeline_.runs[life.last()].end, life.data, -size);
    }
  }

  // State that is far between steps.
  void add_far_between_steps() {
    if (plan_.runs.empty()) return;
    const StateHome home{graph_, block_sizes_, plan_};
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      if (graph_.data[i].is_sent) continue;  // not near either
      const auto far = std::ranges::count(home.far_pages(DataId(i)), true);
      if (far > 0) add(um::Nanoseconds{0}, DataId(i), -far * signed_count(plan_.page));
    }
  }

  void add_workspaces() {
    for (std::size_t i = 0; i < plan_.runs.size(); ++i) {
      const TaskRun& run = plan_.runs[i];
      const std::int64_t size = signed_count(
          block_sizes_.workspace_size(graph_[run.task].algorithms[run.algorithm].workspace));
      if (size == 0) continue;
      NearChange change{.time = timeline_.runs[i].begin,
                        .bytes = size,
                        .purpose = NearPurpose::kWorkspace,
                        .holder = static_cast<std::uint32_t>(i)};
      changes_.push_back(change);
      change.time = timeline_.runs[i].end;
      change.bytes = -size;
      changes_.push_back(change);
    }
  }

  void add_moves() {
    for (std::size_t i = 0; i < timeline_.offloads.size(); ++i) {
      const Move& move = plan_.offloads[i];
      const std::uint32_t frees_after = move.frees_after();
      const um::Nanoseconds in_use =
          frees_after == 0 ? um::Nanoseconds{0} : timeline_.runs[frees_after - 1].end;
      add(std::max(timeline_.offloads[i].end, in_use), move.data, -signed_count(move.size));
    }
    for (std::size_t i = 0; i < timeline_.prefetches.size(); ++i) {
      const Move& move = plan_.prefetches[i];
      add(timeline_.prefetches[i].begin, move.data, signed_count(move.size));
    }
  }

  const TaskGraph& graph_;
  const Plan& plan_;
  const Timeline& timeline_;
  BlockSizes block_sizes_;
  std::vector<NearPurpose> purposes_;
  std::vector<NearChange> changes_;
};

}  // namespace

std::string to_string(NearPurpose purpose) {
  switch (purpose) {
    case NearPurpose::kPinned:
      return "always near";
    case NearPurpose::kState:
      return "state";
    case NearPurpose::kSaved:
      return "saved";
    case NearPurpose::kPassing:
      return "passing";
    case NearPurpose::kGradient:
      return "gradient";
    case NearPurpose::kWorkspace:
      return "workspace";
  }
  throw um::ContractError{"a purpose of near memory that there is not"};
}

std::vector<NearChange> near_changes(const TaskGraph& graph, const Plan& plan,
                                     const Timeline& timeline) {
  um::expects(timeline.runs.size() == plan.runs.size(), "the timeline of all of this plan's runs");
  return Changes{graph, plan, timeline}.find();
}

ExchangeShare exchange_share(const Timeline& timeline) {
  ExchangeShare share;
  for (const Interval& exchange : timeline.exchanges) {
    share.exchanging += exchange.end - exchange.begin;
    for (const Interval& run : timeline.runs) {
      const um::Nanoseconds both =
          std::min(run.end, exchange.end) - std::max(run.begin, exchange.begin);
      share.beside_runs += std::max(both, um::Nanoseconds{0});
    }
  }
  return share;
}

std::vector<MemorySample> memory_curve(const TaskGraph& graph, const Plan& plan,
                                       const Timeline& timeline) {
  std::vector<MemorySample> curve;
  std::int64_t near = 0;
  for (const NearChange& change : near_changes(graph, plan, timeline)) {
    near += change.bytes;
    if (!curve.empty() && curve.back().time == change.time) curve.pop_back();
    curve.push_back(
        {change.time, um::Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(0, near))}});
  }
  return curve;
}

std::vector<double> run_times(const Plan& plan, const Profile& profile,
                              const SimulateOptions& options) {
  std::vector<double> times;
  times.reserve(plan.runs.size());
  std::mt19937_64 random{options.seed};
  for (const TaskRun& run : plan.runs) {
    const double draw = static_cast<double>(random() >> 11U) * 0x1p-53;  // uniform in [0, 1)
    times.push_back(static_cast<double>(profile(run).count()) *
                    (1 + options.noise * (2 * draw - 1)));
  }
  return times;
}

}  // namespace spillway::prefetch
