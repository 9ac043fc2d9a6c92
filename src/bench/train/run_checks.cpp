#include "src/bench/train/run_checks.h"

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

std::vector<std::string> complaints_about(const RunRecord& run_record, const RunRecord* expected) {
  std::vector<std::string> all;
  if (run_record.near_peak > run_record.budget) {
    all.push_back(run_record.name + ", took " + um::to_string(run_record.near_peak) +
                  " of near memory, more than its budget of " + um::to_string(run_record.budget));
  }
  if (expected == nullptr) return all;
  if (!run_record.repeats_itself) {
    all.push_back(run_record.name + ", had other losses in one round than in another");
  }
  if (!are_same_losses(run_record.losses, expected->losses)) {
    all.push_back(run_record.name + ", had other losses than " + expected->name);
  }
  return all;
}

}  // namespace spillway
