#include "prefetch/simulate/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "prefetch/interconnect.h"
#include "prefetch/simulate/timeline.h"

namespace spillway::prefetch {
namespace {

using nlohmann::json;

double microseconds(um::Nanoseconds time) { return static_cast<double>(time.count()) * 1e-3; }

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "";
}

class ChromeTrace {
 public:
  ChromeTrace(const TaskGraph& graph, const Plan& plan) : graph_{graph}, plan_{plan} {}

  void add(int process, const NamedTimeline& named) {
    meta("process_name", process, 0, named.name);
    meta("thread_name", process, kCompute, "compute");
    meta("thread_name", process, kWaiting, "waiting");
    meta("thread_name", process, kOffload, "offload (near to far)");
    meta("thread_name", process, kPrefetch, "prefetch (far to near)");
    if (!plan_.far_runs.empty()) meta("thread_name", process, kFarUpdate, "update (far side)");
    if (!plan_.exchanges.empty()) {
      meta("thread_name", process, kExchange, "exchange (between ranks)");
    }
    if (!named.timeline.faults.empty()) meta("thread_name", process, kFaults, "page faults");
    add_runs(process, named.timeline);
    add_faults(process, named.timeline);
    add_exchanges(process, named.timeline);
    add_far_runs(process, named.timeline);
    add_moves(process, kOffload, plan_.offloads, named.timeline.offloads);
    add_moves(process, kPrefetch, plan_.prefetches, named.timeline.prefetches);
    for (const MemorySample& sample : memory_curve(graph_, plan_, named.timeline)) {
      events_.push_back(
          {{"ph", "C"},
           {"name", "near memory (bytes)"},
           {"pid", process},
           {"ts", microseconds(sample.time)},
           {"args", {{"in use", sample.near.count()}, {"budget", plan_.budget.count()}}}});
    }
    near_[std::to_string(process)] = holders(named.timeline);
  }

  json take() {
    return {{"displayTimeUnit", "ms"},
            {"traceEvents", std::move(events_)},
            {"spillway",
             {{"planner", plan_.planner},
              {"budget_bytes", plan_.budget.count()},
              {"on_demand", plan_.residency == Residency::kOnDemand},
              {"near", std::move(near_)}}}};
  }

 private:
  enum Lane { kCompute = 1, kWaiting, kOffload, kPrefetch, kFarUpdate, kExchange, kFaults };

  void meta(const char* what, int process, int lane, const std::string& name) {
    events_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", lane}, {"args", {{"name", name}}}});
  }

  void span(int process, int lane, const std::string& name, const Interval& interval, json args) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"pid", process},
                       {"tid", lane},
                       {"ts", microseconds(interval.begin)},
                       {"dur", microseconds(interval.end - interval.begin)},
                       {"args", std::move(args)}});
  }

  void add_runs(int process, const Timeline& timeline) {
    um::Nanoseconds previous_end{0};
    for (std::size_t i = 0; i < timeline.runs.size(); ++i) {
      const TaskRun& run = plan_.runs[i];
      const Task& task = graph_[run.task];
      const Interval& interval = timeline.runs[i];
      const std::string suffix = run.is_recomputation ? " (recomputed)" : "";
      if (interval.begin > previous_end) {
        span(process, kWaiting, "before " + task.name, {previous_end, interval.begin},
             json::object());
      }
      span(process, kCompute, task.name + suffix, interval,
           {{"algorithm", task.algorithms[run.algorithm].name}, {"phase", phase_name(task.phase)}});
      previous_end = interval.end;
    }
  }

  // The model serves faults before a run, a host during it. The moment of each is unknown.
  void add_faults(int process, const Timeline& timeline) {
    um::Nanoseconds previous_end{0};
    for (std::size_t i = 0; i < timeline.faults.size(); ++i) {
      const RunFaults& each = timeline.faults[i];
      const um::Nanoseconds end = timeline.runs[i].end;
      if (each.faults > 0) {
        span(process, kFaults,
             std::to_string(each.faults) + (each.faults == 1 ? " fault of " : " faults of ") +
                 graph_[plan_.runs[i].task].name,
             {previous_end, end},
             {{"faults", each.faults},
              {"bytes_in", each.fetched.count()},
              {"bytes_out", each.written_back.count()},
              {"fault_us", microseconds(each.time)}});
      }
      previous_end = end;
    }
  }

  void add_far_runs(int process, const Timeline& timeline) {
    for (std::size_t i = 0; i < timeline.far_runs.size(); ++i) {
      span(process, kFarUpdate, graph_.far_updates[plan_.far_runs[i].update].name,
           timeline.far_runs[i], json::object());
    }
  }

  void add_exchanges(int process, const Timeline& timeline) {
    for (std::size_t i = 0; i < timeline.exchanges.size(); ++i) {
      const GradientExchange& exchange = graph_.exchanges[plan_.exchanges[i].exchange];
      span(process, kExchange, exchange.name, timeline.exchanges[i],
           {{"bytes", exchanged_bytes(graph_, exchange).all().count()},
            {"blocks", exchange.blocks.size()}});
    }
  }

  void add_moves(int process, int lane, const std::vector<Move>& moves,
                 const std::vector<Interval>& intervals) {
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      span(process, lane, graph_[moves[i].data].name, intervals[i],
           {{"offset", moves[i].offset.count()},
            {"bytes", moves[i].is_clean ? 0 : moves[i].size.count()}});
    }
  }

  [[nodiscard]] std::string name_of(const NearChange& change) const {
    switch (change.purpose) {
      case NearPurpose::kPinned:
        return "always near";
      case NearPurpose::kWorkspace:
        return "workspace of " + graph_[plan_.runs[change.holder].task].name;
      default:
        return graph_[DataId(change.holder)].name;
    }
  }

  // Returns each holder of near memory: its name, its purpose, and how much it holds from which
  // moment on.
  [[nodiscard]] json holders(const Timeline& timeline) const {
    std::map<std::pair<NearPurpose, std::uint32_t>, json> found;
    std::map<std::pair<NearPurpose, std::uint32_t>, std::int64_t> near;
    for (const NearChange& change : near_changes(graph_, plan_, timeline)) {
      const std::pair key{change.purpose, change.holder};
      json& holder = found[key];
      if (holder.is_null()) {
        holder = {{"name", name_of(change)},
                  {"purpose", to_string(change.purpose)},
                  {"bytes_from", json::array()}};
      }
      near[key] += change.bytes;
      holder["bytes_from"].push_back(
          {microseconds(change.time), std::max<std::int64_t>(0, near[key])});
    }
    json all = json::array();
    for (auto& [key, holder] : found) all.push_back(std::move(holder));
    return all;
  }

  const TaskGraph& graph_;
  const Plan& plan_;
  json events_ = json::array();
  json near_ = json::object();
};

}  // namespace

json to_chrome_trace(const TaskGraph& graph, const Plan& plan,
                     const std::vector<NamedTimeline>& timelines) {
  ChromeTrace trace{graph, plan};
  int process = 0;
  for (const NamedTimeline& named : timelines) trace.add(++process, named);
  return trace.take();
}

}  // namespace spillway::prefetch
