#include "src/cuda/cudnn/engine_choice.h"

#include <algorithm>

namespace spillway::cuda {
namespace {

constexpr std::size_t kFastest = 4;
constexpr std::size_t kFrontAndFastest = 8;
constexpr std::size_t kEngines = 12;
constexpr std::size_t kSettings = 10;

using Choice = std::vector<std::size_t>;

// Candidates than which no faster one takes less, and the fastest.
Choice front_and_fastest(std::span<const EngineCandidate> candidates, um::Bytes max) {
  Choice fastest;
  Choice front;  // ever less workspace; the last one has the least
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const um::Bytes workspace = candidates[i].workspace;
    if (workspace > max) continue;
    if (front.empty() || workspace < candidates[front.back()].workspace) front.push_back(i);
    if (fastest.size() < kFastest) fastest.push_back(i);
  }
  Choice chosen{front.rbegin(), front.rend()};
  chosen.resize(std::min(chosen.size(), kFrontAndFastest - fastest.size()));
  for (const std::size_t i : fastest) {
    if (std::ranges::find(chosen, i) == chosen.end()) chosen.push_back(i);
  }
  return chosen;
}

// Adds candidates that `is_wanted` and that are not there, in order, while there are less than
// `count`.
template <class IsWanted>
void fill(Choice& chosen, std::size_t candidates, std::size_t count, const IsWanted& is_wanted) {
  for (std::size_t i = 0; i < candidates && chosen.size() < count; ++i) {
    if (std::ranges::find(chosen, i) == chosen.end() && is_wanted(i)) chosen.push_back(i);
  }
}

}  // namespace

std::vector<std::size_t> choose_engines(std::span<const EngineCandidate> candidates,
                                        um::Bytes max) {
  Choice chosen = front_and_fastest(candidates, max);
  for (const bool slow : {false, true}) {
    const auto is_wanted = [&](std::size_t i) {
      return candidates[i].workspace <= max && candidates[i].is_slow == slow;
    };
    const auto is_another_engine = [&](std::size_t i) {
      return is_wanted(i) && std::ranges::none_of(chosen, [&](std::size_t c) {
               return candidates[c].engine == candidates[i].engine;
             });
    };
    fill(chosen, candidates.size(), slow ? kSettings : kEngines, is_another_engine);
    fill(chosen, candidates.size(), kSettings, is_wanted);
  }
  std::ranges::sort(chosen, [&](std::size_t a, std::size_t b) {
    const um::Bytes of_a = candidates[a].workspace;
    const um::Bytes of_b = candidates[b].workspace;
    return of_a != of_b ? of_a < of_b : a < b;
  });
  return chosen;
}

}  // namespace spillway::cuda
