#include "src/cuda/cudnn/engine_choice.h"

#include <algorithm>

namespace spillway::cuda {
namespace {

constexpr std::size_t kFastest = 4;
constexpr std::size_t kMax = 8;

}  // namespace

std::vector<std::size_t> choose_engines(std::span<const um::Bytes> workspaces, um::Bytes max) {
  std::vector<std::size_t> fastest;
  std::vector<std::size_t> front;  // ever less workspace; the last one has the least
  for (std::size_t i = 0; i < workspaces.size(); ++i) {
    if (workspaces[i] > max) continue;
    if (front.empty() || workspaces[i] < workspaces[front.back()]) front.push_back(i);
    if (fastest.size() < kFastest) fastest.push_back(i);
  }
  std::vector<std::size_t> chosen{front.rbegin(), front.rend()};
  const std::size_t room = kMax - std::min(kMax, fastest.size());
  if (chosen.size() > room) chosen.resize(room);
  for (const std::size_t i : fastest) {
    if (std::find(chosen.begin(), chosen.end(), i) == chosen.end()) chosen.push_back(i);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) {
    return workspaces[a] != workspaces[b] ? workspaces[a] < workspaces[b] : a < b;
  });
  return chosen;
}

}  // namespace spillway::cuda
