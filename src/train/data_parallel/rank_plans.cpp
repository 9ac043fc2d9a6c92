#include "src/train/data_parallel/rank_plans.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/far_update.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/plan_question.h"
#include "src/plan/state_choice.h"
#include "src/program/micro_batches.h"
#include "src/ranks/collectives.h"
#include "src/run/interconnect_profiler.h"
#include "um/error.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::Profile;
using um::Nanoseconds;

bool fits(const Workload& near, const SizeModel& size_model, um::Bytes budget,
          const PlanRequest& request) {
  const StateChoice state{near, size_model, request};
  try {
    expect_feasible(state.within(budget), budget, request);
    return true;
  } catch (const um::Error&) {  // such as BudgetTooSmall
    return false;
  }
}

// The times of each task, by algorithm.
json times_by_name(const Step& step, const Profile& profile) {
  json times = json::object();
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    json& of_task = times[step.graph.tasks[t].name] = json::array();
    for (const Nanoseconds time : profile.durations[t]) of_task.push_back(time.count());
  }
  return times;
}

// Ranks may have fewer micro-batches than rank zero, or more.
void take_times(const json& times, const Step& step, Profile& profile) {
  const std::vector<prefetch::TaskId> alike = first_alike(step.graph);
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    auto found = times.find(step.graph.tasks[t].name);
    if (found == times.end()) found = times.find(step.graph[alike[t]].name);
    std::vector<Nanoseconds>& own = profile.durations[t];
    if (found == times.end() || found->size() != own.size()) continue;
    for (std::size_t a = 0; a < own.size(); ++a) {
      own[a] = Nanoseconds{(*found)[a].get<Nanoseconds::rep>()};
    }
  }
}

}  // namespace

ChosenBuckets choose_rank_buckets(const RankOptions& ranks, const Workload& near,
                                  const TimedSteps& timed, const SizeModel& size_model,
                                  um::Bytes budget, const PlanRequest& request) {
  Communicator& communicator = ranks.communicator;
  const auto with_buckets = [&](const prefetch::BucketRule& rule) {
    return near.with(size_model, near.features().with(rule));
  };
  ChosenBuckets chosen{.rule = ranks.buckets};
  on_rank_zero(communicator, [&] {
    chosen.rule =
        choose_buckets(near.training().graph, ranks.buckets, request,
                       [&](const prefetch::BucketRule& rule, const PlanRequest& own) {
                         return planned_time(*with_buckets(rule), timed, size_model, budget, own);
                       });
  });
  broadcast(communicator, chosen.rule);
  if (chosen.rule == ranks.buckets) return chosen;
  auto other = with_buckets(chosen.rule);
  if (any_rank(communicator, !fits(*other, size_model, budget, request))) {
    return {.rule = ranks.buckets};
  }
  chosen.profile = profile_of(*other, timed);
  chosen.near = std::move(other);
  return chosen;
}

std::optional<prefetch::Interconnect> broadcast_profile(const RankOptions& ranks,
                                                        ExecutionContext& context, um::Bytes limit,
                                                        const Step& step, Profile& profile) {
  Communicator& communicator = ranks.communicator;
  if (communicator.size() == 1) return std::nullopt;
  std::string text = communicator.rank() == 0 ? times_by_name(step, profile).dump() : "";
  broadcast(communicator, text);
  take_times(json::parse(text), step, profile);
  broadcast(communicator, profile.link);
  profile.far_updates = prefetch::far_update_times(step.graph, profile.link);
  const RankMemory memory{communicator, ranks.between_near_memory(), context.device->memory()};
  prefetch::Interconnect interconnect = measure_interconnect(memory);
  interconnect.compute_speed = compute_speed_while_exchanging(
      memory, {.context = context, .step = step, .profile = profile, .limit = limit});
  profile.exchanges = prefetch::exchange_times(step.graph, interconnect, profile.link);
  return interconnect;
}

}  // namespace spillway
