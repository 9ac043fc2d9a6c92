#include "src/train/checkpoint/kept_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/plan/plan_question.h"
#include "src/program/micro_batches.h"
#include "src/ranks/collectives.h"
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
constexpr std::string_view kResident = "resident";

// Returns the algorithm of each task when it first runs, whatever graph the plan is of.
std::unordered_map<std::string, std::string> algorithms_of(const JsonFile& file) {
  std::unordered_map<std::string, std::string> algorithms;
  const JsonView runs = file.root().at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    algorithms.emplace(runs.at(i).at("task").string(), runs.at(i).at("algorithm").string());
  }
  return algorithms;
}

// The workloads that a plan in a file may be of.
std::vector<const Workload*> workloads_of(const StateChoice& choice) {
  std::vector<const Workload*> all{&choice.near(), &choice.far()};
  if (choice.far_updates() != nullptr) all.push_back(choice.far_updates());
  return all;
}

std::string on_or_off(bool is_on) { return is_on ? "auto" : "off"; }

// Returns "1 thread, not 2".
std::string threads_apart(std::size_t kept, std::size_t now) {
  return um::count_of(kept, "thread") + ", not " + std::to_string(now);
}

// Returns the differences of two requests, without their budgets: "planner joint, not modnn".
std::vector<std::string> differences(const KeptPlanning& kept, const KeptPlanning& now) {
  std::vector<std::string> all;
  const auto compare = [&](const char* what, const std::string& before, const std::string& after) {
    if (before != after) all.push_back(fmt::format("{} {}, not {}", what, before, after));
  };
  compare("--memory", kept.mode, now.mode);
  if (kept.mode != kResident || now.mode != kResident) {
    compare("planner", kept.planner, now.planner);
    compare("--recompute", on_or_off(kept.may_recompute), on_or_off(now.may_recompute));
    compare("--state", kept.state, now.state);
    compare("--update", kept.update, now.update);
  }
  return all;
}

}  // namespace

KeptPlans::KeptPlans(Communicator& communicator, const std::vector<std::string>& files,
                     KeptSettings settings)
    : communicator_{communicator}, settings_{std::move(settings)} {
  std::vector<std::string> all;  // each file's name and content
  on_rank_zero(communicator, [&] {
    for (const std::string& name : files) {
      all.push_back(name);
      all.push_back(JsonFile{name}.value().dump());
    }
  });
  broadcast(communicator, all);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    const std::string& name = all[i];
    const std::string& text = all[i + 1];
    plans_.push_back({.name = name, .text = text, .algorithms = algorithms_of({text, name})});
  }
}

bool KeptPlans::are_of(const StateChoice& choice) const {
  if (!are_there()) return false;
  const JsonFile first{plans_.front().text, plans_.front().name};
  return std::ranges::any_of(workloads_of(choice), [&](const Workload* workload) {
    return is_made_for(workload->training().graph, first.root());
  });
}

std::optional<um::Bytes> KeptPlans::budget(const std::string& asked,
                                           const StateChoice& choice) const {
  if (settings_.planning) {
    if (settings_.planning->budget != asked) return std::nullopt;
    return settings_.planning->budget_bytes;
  }
  if (asked != "auto") return std::nullopt;
  for (const Workload* const workload : workloads_of(choice)) {
    try {
      return workload->run_budget(read(*workload).plan.budget);
    } catch (const um::Error&) {  // they are of other steps
    }
  }
  return std::nullopt;
}

KeptPlans::Difference KeptPlans::difference(const KeptSettings& now, um::Bytes limit) const {
  if (!are_there()) return {};
  const std::optional<KeptPlanning>& kept = settings_.planning;
  const KeptPlanning& planning = now.planning.value();
  std::vector<std::string> all;
  if (settings_.threads != now.threads) {
    all.push_back(threads_apart(settings_.threads, now.threads));
  }
  if (settings_.precision != now.precision) {
    all.push_back(
        fmt::format("{}, not {}", to_string(settings_.precision), to_string(now.precision)));
  } else if (kept && kept->device != planning.device) {
    all.push_back(fmt::format("{}, not {}", kept->device, planning.device));
  }
  bool rounds_otherwise = !all.empty();
  if (kept) std::ranges::move(differences(*kept, planning), std::back_inserter(all));
  // The same text means other bytes to a batch that is cut for another number of ranks.
  const bool is_automatic = kept && kept->budget == "auto" && planning.budget == "auto";
  const bool has_budget = kept && kept->mode != kResident && planning.mode != kResident;
  const bool is_same_text = now.micro_batch_size && kept && kept->budget == planning.budget;
  if (has_budget && kept->budget_bytes != limit && !is_automatic && !is_same_text) {
    const auto [before, after] = um::texts_apart(kept->budget_bytes, limit);
    all.push_back("a budget of " + before + ", not " + after);
  }
  Difference difference{.text = fmt::format("{}", fmt::join(all, " and ")),
                        .rounds_otherwise = rounds_otherwise};
  broadcast(communicator_, difference.text);
  broadcast(communicator_, difference.rounds_otherwise);
  return difference;
}

// Throws um::Error where it is of another step.
PlanOfFile KeptPlans::read(const Workload& workload) const {
  if (are_of_parts()) throw um::Error{"plans of parts of a step"};
  const auto& [name, text, algorithms] = plans_.front();
  return {.plan = read_plan(JsonFile{text, name}, workload.training().graph), .name = name};
}

std::optional<Plans> KeptPlans::use(const Workload& workload, const Profile& profile,
                                    um::Bytes budget, const PlanRequest& request) const {
  if (!are_there()) return std::nullopt;
  std::optional<Plans> plans;
  try {
    plans = answer({.steps = workload,
                    .profile = profile,
                    .budget = budget,
                    .request = request,
                    .file = read(workload)})
                .plans;
  } catch (const um::Error&) {  // they are of other steps, or take more
  }
  if (any_rank(communicator_, !plans)) return std::nullopt;
  return plans;
}

// Empty where they do not tell.
std::string_view KeptPlans::kept_algorithm(const prefetch::Task& task) const {
  for (const std::string& name : {task.name, std::string{name_in_first(task.name)}}) {
    for (const Kept& plan : plans_) {
      const auto found = plan.algorithms.find(name);
      if (found != plan.algorithms.end()) return found->second;
    }
  }
  return {};
}

Profile KeptPlans::favour(const Workload& workload, Profile profile) const {
  if (!are_there()) return profile;
  const auto& tasks = workload.training().graph.tasks;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const auto kept = std::ranges::find(tasks[t].algorithms, kept_algorithm(tasks[t]),
                                        &prefetch::Algorithm::name);
    std::vector<Nanoseconds>& times = profile.durations[t];
    if (kept == tasks[t].algorithms.end() ||
        *std::ranges::max_element(times) > kLongestFavoured / kSlower) {
      continue;
    }
    const auto favoured = static_cast<std::size_t>(kept - tasks[t].algorithms.begin());
    for (std::size_t a = 0; a < times.size(); ++a) {
      if (a != favoured) times[a] *= kSlower;
    }
  }
  return profile;
}

std::string KeptPlans::departure(const Difference& difference, const Workload& workload,
                                 const prefetch::Plan& plan) const {
  std::size_t chosen = 0;
  std::size_t others = 0;
  for (const prefetch::TaskRun& run : plan.runs) {
    if (run.is_recomputation) continue;
    const prefetch::Task& task = workload.training().graph[run.task];
    const std::string_view kept = kept_algorithm(task);
    const bool is_other = !kept.empty() && kept != task.algorithms[run.algorithm].name;
    chosen += !kept.empty() && (is_other || task.algorithms.size() > 1) ? 1 : 0;
    others += is_other ? 1 : 0;
  }
  const std::string sentence =
      "the checkpoint's plan " +
      (difference.text.empty() ? "does not fit the steps and the budget of this training"
                               : "was made for " + difference.text) +
      "; there is a new one, ";
  if (others > 0) {
    return sentence + "in which " + um::count_of(others, "task") + " of " + std::to_string(chosen) +
           " that had a choice run by other algorithms, so that results may be rounded otherwise";
  }
  if (are_of_parts()) {
    return sentence +
           "of all micro-batches together, whose gradients are added up in another order, so that "
           "results may be rounded otherwise";
  }
  return sentence + "with the same algorithms" +
         (difference.rounds_otherwise
              ? ", but kernels that divide their work otherwise may round otherwise"
              : ", so that results stay the same bit for bit");
}

}  // namespace spillway
