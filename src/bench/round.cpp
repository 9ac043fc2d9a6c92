#include "src/bench/round.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "um/error.h"

namespace spillway {
namespace {

// Zero where one began before the other ended.
Seconds time_between(const Round& a, const Round& b) {
  return std::max({Seconds{0}, Seconds{a.begin - b.end}, Seconds{b.begin - a.end}});
}

}  // namespace

Seconds step_about(std::span<const Round> rounds, std::span<const Round> resident) {
  um::expects(!resident.empty(), "a resident run to compare with");
  constexpr std::size_t kNearest = 3;
  std::vector<Round> by_distance(resident.begin(), resident.end());
  Samples steps;
  for (const Round& round : rounds) {
    std::ranges::stable_sort(by_distance, {},
                             [&](const Round& other) { return time_between(round, other); });
    for (std::size_t i = 0; i < std::min(kNearest, by_distance.size()); ++i) {
      steps.add(by_distance[i].step);
    }
  }
  if (rounds.empty()) {
    for (const Round& round : resident) steps.add(round.step);
  }
  return steps.timing().median;
}

}  // namespace spillway
