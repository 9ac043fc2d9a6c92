#include "src/train/data_parallel/rank_plans.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "src/plan/bucket_choice.h"
#include "src/plan/state_choice.h"
#include "src/ranks/collectives.h"
#include "src/run/interconnect_profiler.h"
#include "src/train/data_parallel/rank_step.h"
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

// The times of each task, by algorithm, of all steps.
json times_by_name(std::span<const RepeatedStep> steps, const std::vector<Profile>& profiles) {
  json times = json::object();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& tasks = steps[i].step.graph.tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      json& of_task = times[tasks[t].name] = json::array();
      for (const Nanoseconds time : profiles[i].durations[t]) of_task.push_back(time.count());
    }
  }
  return times;
}

void take_times(const json& times, std::span<const RepeatedStep> steps,
                std::vector<Profile>& profiles) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& tasks = steps[i].step.graph.tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const auto found = times.find(tasks[t].name);
      std::vector<Nanoseconds>& own = profiles[i].durations[t];
      if (found == times.end() || found->size() != own.size()) continue;
      for (std::size_t a = 0; a < own.size(); ++a) {
        own[a] = Nanoseconds{(*found)[a].get<Nanoseconds::rep>()};
      }
    }
  }
}

}  // namespace

ChosenBuckets choose_rank_buckets(const RankOptions& ranks, const Workload& near,
                                  const TimedSteps& timed, const SizeModel& size_model,
                                  um::Bytes budget, const PlanRequest& request) {
  Communicator& communicator = ranks.communicator;
  const ShardedBatch batch =
      shard_batch(ranks, ranks.shards.value() * near.training_steps().back().batch);
  const auto with_buckets = [&](const prefetch::BucketRule& rule) {
    return near.with_buckets(size_model, rule, [&](const Step& last) {
      return RankStep::near_memory(batch, ranks, last);
    });
  };
  ChosenBuckets chosen{.rule = ranks.buckets};
  on_rank_zero(communicator, [&] {
    chosen.rule =
        choose_buckets(near.training().graph, ranks.buckets, *request.planner,
                       [&](const prefetch::BucketRule& rule, const prefetch::Planner& planner) {
                         return planned_time(*with_buckets(rule), timed, size_model, budget,
                                             with_planner(request, planner));
                       });
  });
  broadcast(communicator, chosen.rule);
  if (chosen.rule == ranks.buckets) return chosen;
  auto other = with_buckets(chosen.rule);
  if (any_rank(communicator, !fits(*other, size_model, budget, request))) {
    return {.rule = ranks.buckets};
  }
  chosen.profiles = profiles_of(*other, timed);
  chosen.near = std::move(other);
  return chosen;
}

std::optional<prefetch::Interconnect> broadcast_profiles(const RankOptions& ranks,
                                                         ExecutionContext& context, um::Bytes limit,
                                                         std::span<const RepeatedStep> steps,
                                                         std::vector<Profile>& profiles) {
  Communicator& communicator = ranks.communicator;
  Profile& last = profiles.back();
  const prefetch::TaskGraph& graph = steps.back().step.graph;
  if (communicator.size() == 1) {
    last.exchanges.assign(graph.exchanges.size(), {});
    return std::nullopt;
  }
  std::string text = communicator.rank() == 0 ? times_by_name(steps, profiles).dump() : "";
  broadcast(communicator, text);
  take_times(json::parse(text), steps, profiles);  // rank zero may have some twice
  prefetch::LinkProfile link = last.link;
  broadcast(communicator, link);
  for (Profile& profile : profiles) profile.link = link;
  const RankMemory memory{communicator, ranks.between_near_memory(), context.device->memory()};
  prefetch::Interconnect interconnect = measure_interconnect(memory);
  interconnect.compute_speed = compute_speed_while_exchanging(
      memory, {.context = context, .step = steps.back().step, .profile = last, .limit = limit});
  last.exchanges = prefetch::exchange_times(graph, interconnect, link);
  return interconnect;
}

}  // namespace spillway
