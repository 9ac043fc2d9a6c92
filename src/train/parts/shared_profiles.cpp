#include "src/train/parts/shared_profiles.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "prefetch/interconnect.h"
#include "src/ranks/gather_texts.h"
#include "src/train/parts/first_rank.h"
#include "um/bytes.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::Profile;
using um::Nanoseconds;

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

// The shortest of a few times that `work` takes, ranks together.
template <class Work>
double shortest_seconds(const Work& work) {
  constexpr int kTimes = 5;
  double shortest = 0;
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    shortest = i == 0 ? took.count() : std::min(shortest, took.count());
  }
  return shortest;
}

prefetch::Interconnect measure(const RankOptions& ranks) {
  Communicator& communicator = *ranks.communicator;
  const auto count = static_cast<double>(communicator.ranks());
  std::vector<float> numbers(std::size_t{1} << 20U);
  const TreeReduction reduction{communicator, communicator.ranks()};
  std::vector<std::byte> scratch(reduction.scratch_size(numbers.size()).count());
  const std::array<std::span<const float>, 1> node{numbers};
  std::array<double, 2> seconds{
      shortest_seconds([&] { wait_for_all(communicator); }),
      shortest_seconds([&] { reduction.all_reduce(node, numbers, scratch); })};
  share_first(communicator, seconds);
  // As prefetch::all_reduce_time() has it: twice N - 1 messages of 1 / N of the bytes.
  const auto& [empty, full] = seconds;
  const double bytes = 2 * (count - 1) / count * static_cast<double>(numbers.size() * sizeof(float));
  return {.ranks = static_cast<std::uint32_t>(communicator.ranks()),
          .bandwidth = um::Bandwidth{std::max(1e6, bytes / std::max(full - empty, 1e-9))},
          .latency = Nanoseconds{static_cast<Nanoseconds::rep>(1e9 * empty / 2)},
          .shares_link = false};
}

}  // namespace

void share_profiles(const RankOptions& ranks, std::span<const RepeatedStep> steps,
                    std::vector<Profile>& profiles) {
  Communicator& communicator = *ranks.communicator;
  const bool is_own = is_first(&communicator);
  const std::string text =
      gather_texts(communicator, is_own ? times_by_name(steps, profiles).dump() : std::string{})
          .front();
  if (!is_own) take_times(json::parse(text), steps, profiles);
  prefetch::LinkProfile link = profiles.back().link;
  share_first(communicator, link);
  for (Profile& profile : profiles) profile.link = link;
  Profile& last = profiles.back();
  const prefetch::TaskGraph& graph = steps.back().step.graph;
  if (communicator.ranks() == 1) {
    last.exchanges.assign(graph.exchanges.size(), {});
  } else {
    last.exchanges = prefetch::exchange_times(graph, measure(ranks), link);
  }
}

}  // namespace spillway
