#include "src/bench/turn.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "um/error.h"

namespace spillway {
namespace {

// Zero where one began before the other ended.
Seconds time_between(const Turn& a, const Turn& b) {
  return std::max({Seconds{0}, Seconds{a.begin - b.end}, Seconds{b.begin - a.end}});
}

}  // namespace

Seconds step_about(std::span<const Turn> turns, std::span<const Turn> resident) {
  um::expects(!resident.empty(), "a resident run to compare with");
  constexpr std::size_t kNearest = 3;
  std::vector<Turn> by_distance(resident.begin(), resident.end());
  Samples steps;
  for (const Turn& turn : turns) {
    std::ranges::stable_sort(by_distance, {},
                             [&](const Turn& other) { return time_between(turn, other); });
    for (std::size_t i = 0; i < std::min(kNearest, by_distance.size()); ++i) {
      steps.add(by_distance[i].step);
    }
  }
  if (turns.empty()) {
    for (const Turn& turn : resident) steps.add(turn.step);
  }
  return steps.figure().median;
}

}  // namespace spillway
