#include "tests/src/ranks/micro_batch_numbers.h"

#include <cstring>
#include <random>
#include <utility>

namespace spillway::testing {
namespace {

std::vector<float> sum_of(std::vector<float> left, const std::vector<float>& right) {
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

std::vector<float> node_sum(const MicroBatchRange& node, std::size_t n) {
  if (node.count() == 1) return micro_batch_numbers(node.first, n);
  std::size_t half = 1;  // largest power of two below the count
  while (half * 2 < node.count()) half *= 2;
  return sum_of(node_sum({node.first, node.first + half}, n),
                node_sum({node.first + half, node.end}, n));
}

}  // namespace

std::vector<float> micro_batch_numbers(std::size_t micro_batch, std::size_t n) {
  std::minstd_rand random{static_cast<std::minstd_rand::result_type>(micro_batch + 1)};
  random.discard(10);
  std::vector<float> numbers(n);
  for (float& number : numbers) {  // std distributions differ between libraries
    number = static_cast<float>(static_cast<double>(random()) / 1073741823.5 - 1);
  }
  return numbers;
}

std::vector<std::vector<float>> range_sums(const SumTree& tree, const MicroBatchRange& range,
                                           std::size_t n) {
  std::vector<std::vector<float>> stack;
  for (std::size_t micro_batch = range.first; micro_batch < range.end; ++micro_batch) {
    stack.push_back(micro_batch_numbers(micro_batch, n));
    for (std::size_t merges = tree.merges_after(range, micro_batch); merges > 0; --merges) {
      const std::vector<float> top = std::move(stack.back());
      stack.pop_back();
      stack.back() = sum_of(std::move(stack.back()), top);
    }
  }
  return stack;
}

std::vector<float> tree_sum(std::size_t micro_batches, std::size_t n) {
  return node_sum({0, micro_batches}, n);
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace spillway::testing
