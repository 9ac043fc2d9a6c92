// Tests all algorithms of attention on a GPU: our kernel in each precision, cuDNN's in bfloat16.

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

struct AttentionSizes {
  std::size_t batch;
  std::size_t tokens;
  std::size_t width;
  Heads heads;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const AttentionSizes& s, std::ostream* out) {
  *out << s.batch << " x " << s.tokens << ", " << s.heads.heads << '/' << s.heads.kv_heads
       << " heads of " << s.width;
}

class AttentionAlgorithms : public KernelRunner,
                            public ::testing::WithParamInterface<std::tuple<AttentionSizes, bool>> {
 protected:
  [[nodiscard]] static AttentionGeometry geometry() {
    const auto& [sizes, is_causal] = GetParam();
    const std::size_t parts = sizes.heads.heads + 2 * sizes.heads.kv_heads;
    return {.x = {.batch = sizes.batch, .image = nets::sequence(sizes.tokens, parts * sizes.width)},
            .heads = sizes.heads,
            .is_causal = is_causal};
  }
  [[nodiscard]] Block drawn(const TensorShape& shape, unsigned seed) {
    return tensor(shape, random_values(shape.elements(), seed));
  }
  [[nodiscard]] std::vector<std::string> names(const Operation& operation) {
    std::vector<std::string> names;
    for (const AlgorithmInfo& algorithm : backend().algorithms(operation)) {
      names.push_back(algorithm.name);
    }
    return names;
  }
  // In bfloat16, weights and slopes are rounded by 2^-9 each. This affects a key's weights, which
  // sum to up to 1 + 1/2 + ... + 1/tokens for the first key, and sums over a head.
  [[nodiscard]] static double tolerance() {
    constexpr double kFloats = 3e-5;
    if (has_float_tensors()) return kFloats;
    const auto& [sizes, is_causal] = GetParam();
    const double weights = 1 + std::log(static_cast<double>(sizes.tokens));
    const double sums = std::sqrt(static_cast<double>(sizes.width));
    return kFloats + std::ldexp(2 * (weights + sums), -9);
  }
};

TEST_P(AttentionAlgorithms, HaveTheHostsNumbersAndTheSameBitsTwice) {
  const AttentionForward forward{.geometry = geometry()};
  const TensorShape x_shape = forward.geometry.x;
  const TensorShape y_shape = forward.geometry.y();
  Block x = drawn(x_shape, 1);
  Block y = tensor(y_shape);
  Block saved = saved_by(forward);
  run(forward, {&x, &y, &saved});
  for (const std::string& name : names(forward)) {
    SCOPED_TRACE(name);
    run_with(name, forward, {&x, &y, &saved});
    expect_same_on_host(y_shape, y, tolerance());
    const auto y_bytes = y.bytes();
    const auto saved_bytes = saved.bytes();
    run_with(name, forward, {&x, &y, &saved});
    EXPECT_EQ(y.bytes(), y_bytes);
    EXPECT_EQ(saved.bytes(), saved_bytes);
  }
  // `y` and `saved` are the last algorithm's: backward may use another one.
  const AttentionBackward backward{.geometry = forward.geometry};
  Block dy = drawn(y_shape, 2);
  Block dx = tensor(x_shape);
  run(backward, {&x, &y, &dy, &saved, &dx});
  for (const std::string& name : names(backward)) {
    SCOPED_TRACE(name);
    run_with(name, backward, {&x, &y, &dy, &saved, &dx});
    expect_same_on_host(x_shape, dx, tolerance());
    const auto dx_bytes = dx.bytes();
    run_with(name, backward, {&x, &y, &dy, &saved, &dx});
    EXPECT_EQ(dx.bytes(), dx_bytes);
  }
}

TEST_P(AttentionAlgorithms, AreMoreThanOursInBfloat16) {
  const AttentionForward forward{.geometry = geometry()};
  const AttentionBackward backward{.geometry = forward.geometry};
  EXPECT_EQ(names(forward).front(), "default");
  EXPECT_EQ(names(backward).front(), "default");
  EXPECT_EQ(names(forward).size() > 1, is_bf16());
  EXPECT_EQ(names(backward).size() > 1, is_bf16());
}

INSTANTIATE_TEST_SUITE_P(OfSizes, AttentionAlgorithms,
                         ::testing::Combine(::testing::Values(AttentionSizes{1, 1, 8, {1, 1}},
                                                              AttentionSizes{2, 37, 40, {2, 2}},
                                                              AttentionSizes{2, 65, 64, {4, 2}},
                                                              AttentionSizes{1, 197, 64, {3, 3}},
                                                              AttentionSizes{1, 256, 128, {4, 1}}),
                                            ::testing::Bool()));

}  // namespace
}  // namespace spillway::cuda
