#include "src/bench/train_honesty.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace spillway {
namespace {

bool is_same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

bool are_same_losses(const std::vector<float>& a, const std::vector<float>& b) {
  const std::size_t count = std::min(a.size(), b.size());
  return std::ranges::equal(std::span{a}.first(count), std::span{b}.first(count), is_same_bits);
}

std::vector<std::string> complaints_about(const TrainConduct& conduct,
                                          const TrainConduct* expected) {
  std::vector<std::string> all;
  if (conduct.near_peak > conduct.budget) {
    all.push_back(conduct.name + ", took " + um::to_string(conduct.near_peak) +
                  " of near memory, more than its budget of " + um::to_string(conduct.budget));
  }
  if (expected == nullptr) return all;
  if (!conduct.repeats_itself) {
    all.push_back(conduct.name + ", had other losses in one round than in another");
  }
  if (!are_same_losses(conduct.losses, expected->losses)) {
    all.push_back(conduct.name + ", had other losses than " + expected->name);
  }
  return all;
}

}  // namespace spillway
