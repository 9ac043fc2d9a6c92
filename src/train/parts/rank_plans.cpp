#include "src/train/parts/rank_plans.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/state_choice.h"
#include "src/profile/interconnect_profiler.h"
#include "src/ranks/agreement.h"
#include "src/train/parts/rank_messages.h"
#include "src/train/parts/rank_step.h"
#include "src/train/parts/rank_training.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonFile;
using prefetch::JsonView;
using prefetch::Profile;
using um::Nanoseconds;

constexpr Nanoseconds::rep kSlower = 1000;  // times
constexpr Nanoseconds kLongestFavoured{1'000'000'000'000'000};

// Of each task when it first runs, whatever graph the plan is of.
std::unordered_map<std::string, std::string> algorithms_of(const JsonFile& file) {
  std::unordered_map<std::string, std::string> algorithms;
  const JsonView runs = file.root().at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    algorithms.emplace(runs.at(i).at("task").string(), runs.at(i).at("algorithm").string());
  }
  return algorithms;
}

// A training step of `count` others' in a plan's place: the last one updates.
std::size_t counterpart(std::size_t step, std::size_t count, std::size_t others) {
  if (step + 1 == count || others == 1) return others - 1;
  return std::min(step, others - 2);
}

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

KeptPlans::KeptPlans(const RankOptions& ranks, const std::vector<std::string>& files) {
  std::vector<std::string> read;  // a file's name, and what it holds
  on_first_rank(*ranks.communicator, [&] {
    for (const std::string& name : files) {
      read.push_back(name);
      read.push_back(JsonFile{name}.value().dump());
    }
  });
  const std::vector<std::string> all = gather_lists(*ranks.communicator, read).front();
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const std::string& name = all[i];
    const std::string& text = all[i + 1];
    plans_.push_back({.name = name, .text = text, .algorithms = algorithms_of({text, name})});
  }
}

// Throws um::Error where they are of other steps.
std::vector<PlanOfFile> KeptPlans::read(const Workload& workload) const {
  const std::vector<RepeatedStep>& steps = workload.training_steps();
  if (steps.size() != plans_.size()) throw um::Error{"plans of other steps"};
  std::vector<PlanOfFile> plans;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& [name, text, algorithms] = plans_[i];
    plans.push_back({.plan = read_plan(JsonFile{text, name}, steps[i].step.graph), .name = name});
  }
  return plans;
}

std::optional<Plans> KeptPlans::use(const RankOptions& ranks, const Workload& workload,
                                    std::span<const Profile> profiles, um::Bytes budget,
                                    const PlanRequest& request) const {
  if (!are_there()) return std::nullopt;
  std::optional<Plans> plans;
  try {
    plans = use_plans(read(workload), workload, profiles, budget, request);
  } catch (const um::Error&) {  // they are of other steps, or take more
  }
  if (any_rank(*ranks.communicator, !plans)) return std::nullopt;
  return plans;
}

std::optional<std::uint32_t> KeptPlans::kept_algorithm(const Workload& workload, std::size_t step,
                                                       const prefetch::Task& task) const {
  if (task.algorithms.size() < 2) return std::nullopt;
  const std::size_t own = counterpart(step, workload.training_steps().size(), plans_.size());
  for (std::size_t i = 0; i < plans_.size(); ++i) {  // its own first
    const Algorithms& algorithms = plans_[(own + i) % plans_.size()].algorithms;
    const auto name = algorithms.find(task.name);
    if (name == algorithms.end()) continue;
    const auto found = std::ranges::find(task.algorithms, name->second, &prefetch::Algorithm::name);
    if (found == task.algorithms.end()) continue;
    return static_cast<std::uint32_t>(found - task.algorithms.begin());
  }
  return std::nullopt;
}

std::vector<Profile> KeptPlans::favour(const Workload& workload,
                                       std::vector<Profile> profiles) const {
  if (!are_there()) return profiles;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto& tasks = workload.training_steps()[i].step.graph.tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const std::optional<std::uint32_t> kept = kept_algorithm(workload, i, tasks[t]);
      std::vector<Nanoseconds>& times = profiles[i].durations[t];
      if (!kept || *std::ranges::max_element(times) > kLongestFavoured / kSlower) continue;
      for (std::uint32_t a = 0; a < times.size(); ++a) {
        if (a != *kept) times[a] *= kSlower;
      }
    }
  }
  return profiles;
}

std::string KeptPlans::departure(const Workload& workload,
                                 std::span<const prefetch::Plan> plans) const {
  std::size_t chosen = 0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const prefetch::TaskRun& run : plans[i].runs) {
      if (run.is_recomputation) continue;
      const prefetch::Task& task = workload.training_steps()[i].step.graph[run.task];
      const std::optional<std::uint32_t> kept = kept_algorithm(workload, i, task);
      chosen += kept ? 1 : 0;
      others += kept && *kept != run.algorithm ? 1 : 0;
    }
  }
  if (chosen == 0) return {};
  const std::string sentence =
      "the checkpoint's plan is not for these ranks and this budget: there is a new one, ";
  if (others == 0) return sentence + "with the same algorithms";
  return sentence + "in which " + um::count_of(others, "task") + " of " + std::to_string(chosen) +
         " that have a choice run by other algorithms, so that results may be rounded otherwise";
}

ChosenBuckets choose_rank_buckets(const RankOptions& ranks, const Workload& near,
                                  const TimedSteps& timed, const SizeModel& size_model,
                                  um::Bytes budget, const PlanRequest& request) {
  Communicator& communicator = *ranks.communicator;
  const ShardedBatch batch = shard_batch(ranks, ranks.shards * near.training_steps().back().batch);
  const auto with_buckets = [&](const prefetch::BucketRule& rule) {
    return near.with_buckets(size_model, rule, [&](const Step& last) {
      return RankStep::near_memory(batch, ranks, last);
    });
  };
  ChosenBuckets chosen{.rule = ranks.buckets};
  on_first_rank(communicator, [&] {
    chosen.rule =
        choose_buckets(near.training().graph, ranks.buckets, *request.planner,
                       [&](const prefetch::BucketRule& rule, const prefetch::Planner& planner) {
                         return planned_time(*with_buckets(rule), timed, size_model, budget,
                                             with_planner(request, planner));
                       });
  });
  share_first(communicator, chosen.rule);
  if (chosen.rule == ranks.buckets) return chosen;
  auto other = with_buckets(chosen.rule);
  if (any_rank(communicator, !fits(*other, size_model, budget, request))) {
    return {.rule = ranks.buckets};
  }
  chosen.profiles = profiles_of(*other, timed);
  chosen.near = std::move(other);
  return chosen;
}

std::optional<prefetch::Interconnect> share_profiles(const RankOptions& ranks,
                                                     ExecutionContext& context, um::Bytes limit,
                                                     std::span<const RepeatedStep> steps,
                                                     std::vector<Profile>& profiles) {
  Communicator& communicator = *ranks.communicator;
  const bool is_own = is_first(&communicator);
  const std::string text =
      gather_texts(communicator, is_own ? times_by_name(steps, profiles).dump() : std::string{})
          .front();
  take_times(json::parse(text), steps, profiles);  // the first rank may have some twice
  prefetch::LinkProfile link = profiles.back().link;
  share_first(communicator, link);
  for (Profile& profile : profiles) profile.link = link;
  Profile& last = profiles.back();
  const prefetch::TaskGraph& graph = steps.back().step.graph;
  if (communicator.ranks() == 1) {
    last.exchanges.assign(graph.exchanges.size(), {});
    return std::nullopt;
  }
  const RankMemory memory{communicator, ranks.between_near_memory(), context.device->memory()};
  prefetch::Interconnect interconnect = measure_interconnect(memory);
  interconnect.compute_speed = compute_speed_while_exchanging(
      memory, {.context = context, .step = steps.back().step, .profile = last, .limit = limit});
  last.exchanges = prefetch::exchange_times(graph, interconnect, link);
  return interconnect;
}

}  // namespace spillway
