#include "src/train/parts/kept_plans.h"

#include <algorithm>
#include <cstdint>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/ranks/agreement.h"
#include "src/train/parts/first_rank.h"
#include "src/train/parts/gather_lists.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

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

}  // namespace spillway
