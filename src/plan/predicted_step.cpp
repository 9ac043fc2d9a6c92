#include "src/plan/predicted_step.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/far_update.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/state_home.h"
#include "prefetch/task_graph.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::Profile;
using prefetch::Task;
using prefetch::TaskGraph;
using um::Bytes;
using um::Nanoseconds;

struct Traffic {
  Bytes out;
  Bytes in;
};

// A block of movable state between the steps of one plan.
struct StateAtHome {
  std::vector<bool> far_pages;
  bool is_written = false;  // by the step
};

// By name, which is the same in all steps.
using Homes = std::map<std::string_view, StateAtHome>;

Homes homes_of(const prefetch::TaskGraph& graph, const prefetch::Plan& plan) {
  const prefetch::BlockSizes block_sizes{graph, plan.page};
  const prefetch::StateHome home{graph, block_sizes, plan};
  Homes homes;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const DataId id{static_cast<std::uint32_t>(i)};
    if (!graph[id].is_offloadable || !block_sizes.is_movable(id)) continue;
    homes[graph[id].name] = {.far_pages = home.far_pages(id)};
  }
  for (const prefetch::Task& task : graph.tasks) {
    prefetch::for_each_written(task, [&](DataId id) {
      const auto found = homes.find(graph[id].name);
      if (found != homes.end()) found->second.is_written = true;
    });
  }
  return homes;
}

// What moves when the step with homes `to` follows the one with `from`.
Traffic passed_on(const Homes& from, const Homes& to, Bytes page, MemoryMode memory) {
  Traffic traffic;
  for (const auto& [name, next] : to) {
    const auto found = from.find(name);
    for (std::size_t i = 0; i < next.far_pages.size(); ++i) {
      const bool was_far = found == from.end() || found->second.far_pages[i];
      const bool is_far = next.far_pages[i];
      const bool all_move = memory == MemoryMode::kCopy;
      if (!is_far && (was_far || all_move)) traffic.in += page;
      if (was_far || !(is_far || all_move)) continue;
      if (!all_move || found->second.is_written) traffic.out += page;
    }
  }
  return traffic;
}

// How long a batch waits, by its profiles' link, while the sub-steps of its shards pass on state
// whose pages one plan has near between steps and the next one far. Unified memory moves the pages
// that differ. With explicit copies all that is near is sent far, where it was written, and
// brought again. Zero where a batch runs one kind of step, or state is always near.
um::Nanoseconds state_passing_time(const Workload& workload,
                                   std::span<const prefetch::Profile> profiles, const Plans& plans,
                                   MemoryMode memory) {
  const std::vector<RepeatedStep>& steps = workload.training_steps();
  if (steps.size() < 2 || memory == MemoryMode::kResident) return um::Nanoseconds{0};
  std::vector<Homes> homes;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    homes.push_back(homes_of(steps[i].step.graph, plans.training[i]));
  }
  const prefetch::LinkProfile& link = profiles.front().link;
  const std::vector<std::size_t>& sequence = workload.sequence();
  um::Nanoseconds time{0};
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const std::size_t next = sequence[(i + 1) % sequence.size()];
    if (next == sequence[i]) continue;
    const Traffic traffic = passed_on(homes[sequence[i]], homes[next], workload.page(), memory);
    time += traffic.out / link.offload + traffic.in / link.prefetch;
  }
  return time;
}

// "fc6.update[1]" of "fc6.take[1]"; else the same.
std::string measured_name(std::string task) {
  constexpr std::string_view kTake = ".take";
  const std::size_t place = task.rfind(kTake);
  return place == std::string::npos ? task : task.replace(place, kTake.size(), ".update");
}

// The task of `of` whose times are those of a task.
class Measured {
 public:
  explicit Measured(const TaskGraph& of) {
    for (std::size_t t = 0; t < of.tasks.size(); ++t) places_.emplace(of.tasks[t].name, t);
  }

  [[nodiscard]] std::size_t place_of(const Task& task) const {
    auto found = places_.find(task.name);
    if (found == places_.end()) found = places_.find(measured_name(task.name));
    um::expects(found != places_.end(), "a profile of the same tasks");
    return found->second;
  }

 private:
  std::unordered_map<std::string, std::size_t> places_;
};

// Of `task`, in proportion to the bytes that it goes over.
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

}  // namespace

um::Nanoseconds predicted_step(const Workload& workload,
                               std::span<const prefetch::Profile> profiles, const Plans& plans,
                               MemoryMode memory, std::span<const prefetch::Answer> answers) {
  um::expects(profiles.size() == workload.training_steps().size(), "a profile for each step");
  um::Nanoseconds sum = state_passing_time(workload, profiles, plans, memory);
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const RepeatedStep& part = workload.training_steps()[i];
    const prefetch::Plan& plan = plans.training[i];
    um::Nanoseconds once{0};
    if (memory == MemoryMode::kResident && plan.exchanges.empty()) {
      once = prefetch::compute_time(profiles[i], plan.runs);
    } else if (!answers.empty()) {
      once = answers[i].timeline.makespan();
    } else {
      once = prefetch::simulate(part.step.graph, plan, profiles[i]).makespan();
    }
    sum += static_cast<std::int64_t>(part.times) * once;
  }
  return sum;
}

Profile profile_for(const TaskGraph& graph, const TaskGraph& of, Profile profile) {
  um::expects(profile.durations.size() == of.tasks.size(), "a profile of the tasks");
  profile.graph = prefetch::fingerprint(graph);
  profile.far_updates = prefetch::far_update_times(graph, profile.link);
  const Measured measured{of};
  std::vector<std::vector<Nanoseconds>> durations;
  durations.reserve(graph.tasks.size());
  for (const Task& task : graph.tasks) {
    const std::size_t place = measured.place_of(task);
    durations.push_back(scaled(profile.durations[place], of.tasks[place], task));
  }
  profile.durations = std::move(durations);
  return profile;
}

std::vector<Profile> profiles_for(const Workload& workload, const Workload& of,
                                  std::vector<Profile> profiles) {
  if (&workload == &of) return profiles;
  um::expects(profiles.size() == workload.training_steps().size(), "a profile for each step");
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    profiles[i] = profile_for(workload.training_steps()[i].step.graph,
                              of.training_steps()[i].step.graph, std::move(profiles[i]));
  }
  return profiles;
}

}  // namespace spillway
