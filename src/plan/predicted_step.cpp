#include "src/plan/predicted_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prefetch/far_update.h"
#include "prefetch/files/machine.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/task_graph.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/program/micro_batches.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::Profile;
using prefetch::Task;
using prefetch::TaskGraph;
using um::Nanoseconds;

// Returns names of tasks that take as long for as many bytes. For "fc6.send[1]", "fc6.take[1]" and
// "fc6.accumulate[1]#2" that is "fc6.update[1]"; for "fc6.update[1]" it is "fc6.send[1]".
std::array<std::string, 2> measured_names(const std::string& task) {
  std::array<std::string, 2> names;
  names.fill(std::string{name_in_first(task)});
  const auto replace = [](std::string& name, std::string_view part, std::string_view other) {
    const std::size_t place = name.rfind(part);
    if (place != std::string::npos) name.replace(place, part.size(), other);
  };
  for (const auto* const part : {".take", ".accumulate", ".send"})
    replace(names[0], part, ".update");
  replace(names[1], ".update", ".send");
  return names;
}

// The task of `of` whose times are those of a task.
class Measured {
 public:
  explicit Measured(const TaskGraph& of) {
    for (std::size_t t = 0; t < of.tasks.size(); ++t) places_.emplace(of.tasks[t].name, t);
  }

  [[nodiscard]] std::size_t place_of(const Task& task) const {
    auto found = places_.find(task.name);
    for (const std::string& name : measured_names(task.name)) {
      if (found == places_.end()) found = places_.find(name);
    }
    um::expects(found != places_.end(), "a profile of the same tasks");
    return found->second;
  }

 private:
  std::unordered_map<std::string, std::size_t> places_;
};

// Scales `times`, which are of `measured`, by the bytes that `task` goes over.
std::vector<Nanoseconds> scaled(std::vector<Nanoseconds> times, const Task& measured,
                                const Task& task) {
  if (task.traffic == measured.traffic) return times;
  const double share =
      static_cast<double>(task.traffic.count()) / static_cast<double>(measured.traffic.count());
  for (Nanoseconds& time : times) {
    time = Nanoseconds{static_cast<Nanoseconds::rep>(static_cast<double>(time.count()) * share)};
  }
  return times;
}

// Returns `times`, which are of `measured`, for the algorithms of `task`, by name. One that was not
// measured takes as long as the first one that was, in the proportion of `modelled`.
std::vector<Nanoseconds> by_algorithm(std::vector<Nanoseconds> times, const Task& measured,
                                      const Task& task, const std::vector<Nanoseconds>& modelled) {
  if (std::ranges::equal(task.algorithms, measured.algorithms, {}, &prefetch::Algorithm::name,
                         &prefetch::Algorithm::name)) {
    return times;
  }
  std::vector<std::optional<Nanoseconds>> known;
  for (const prefetch::Algorithm& each : task.algorithms) {
    const auto found =
        std::ranges::find(measured.algorithms, each.name, &prefetch::Algorithm::name);
    const auto place = static_cast<std::size_t>(found - measured.algorithms.begin());
    known.push_back(place < times.size() ? std::optional{times[place]} : std::nullopt);
  }
  const auto is_known = [](const std::optional<Nanoseconds>& time) { return time.has_value(); };
  // If no algorithm is of both, the first ones stand for each other.
  if (std::ranges::none_of(known, is_known)) known.front() = times.front();
  const auto first = std::ranges::find_if(known, is_known);
  const Nanoseconds model = modelled[static_cast<std::size_t>(first - known.begin())];
  const double time = model > Nanoseconds{0} ? um::to_double(**first) / um::to_double(model) : 0;
  times.clear();
  for (std::size_t a = 0; a < known.size(); ++a) {
    const Nanoseconds scaled{std::llround(time * um::to_double(modelled[a]))};
    times.push_back(known[a].value_or(time > 0 ? scaled : **first));
  }
  return times;
}

}  // namespace

um::Nanoseconds predicted_step(const Workload& workload, const prefetch::Profile& profile,
                               const Plans& plans, MemoryMode memory,
                               const prefetch::Timeline* timeline) {
  const prefetch::Plan& plan = plans.training;
  if (memory == MemoryMode::kResident && plan.exchanges.empty()) {
    return prefetch::compute_time(profile, plan.runs);
  }
  return timeline != nullptr
             ? timeline->makespan()
             : prefetch::simulate(workload.training().graph, plan, profile).makespan();
}

Profile profile_for(const TaskGraph& graph, const TaskGraph& of, Profile profile) {
  um::expects(profile.durations.size() == of.tasks.size(), "a profile of the tasks");
  profile.graph = prefetch::fingerprint(graph);
  profile.far_updates = prefetch::far_update_times(graph, profile.link);
  const Measured measured{of};
  const Profile model = prefetch::model_profile(graph, prefetch::find_machine("host"));
  std::vector<std::vector<Nanoseconds>> durations;
  durations.reserve(graph.tasks.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const std::size_t place = measured.place_of(task);
    const Task& same = of.tasks[place];
    durations.push_back(
        by_algorithm(scaled(profile.durations[place], same, task), same, task, model.durations[t]));
  }
  profile.durations = std::move(durations);
  return profile;
}

Profile profile_for(const Workload& workload, const Workload& of, Profile profile) {
  if (&workload == &of) return profile;
  return profile_for(workload.training().graph, of.training().graph, std::move(profile));
}

}  // namespace spillway
