// What a network expects behind one token, compared with a plain loop.
#include <cmath>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

struct LogitsCase {
  std::size_t batch;
  std::size_t tokens;
  std::size_t width;
  std::size_t vocabulary;
  std::size_t position;
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const LogitsCase& c, std::ostream* out) {
  *out << c.batch << 'x' << c.tokens << 'x' << c.width << ", " << c.vocabulary
       << " tokens, that at " << c.position;
}

class Logits : public KernelRunner, public ::testing::WithParamInterface<LogitsCase> {
 protected:
  Logits()
      : geometry_{.x = {.batch = GetParam().batch,
                        .image = nets::sequence(GetParam().tokens, GetParam().width)},
                  .vocabulary = GetParam().vocabulary},
        x_{random_values(geometry_.x.elements(), 1)},
        table_{host::random_values(geometry_.vocabulary * GetParam().width, 2)},
        bias_{host::random_values(geometry_.vocabulary, 3)} {}

  // Of token `t` of each sample. Values of x are (N, C, T).
  [[nodiscard]] Values wanted(std::size_t t, bool has_bias) const {
    const std::size_t width = GetParam().width;
    Values logits;
    for (std::size_t n = 0; n < geometry_.x.batch; ++n) {
      for (std::size_t v = 0; v < geometry_.vocabulary; ++v) {
        double sum = has_bias ? bias_[v] : 0;
        for (std::size_t c = 0; c < width; ++c) {
          sum += x_[(n * width + c) * GetParam().tokens + t] * table_[v * width + c];
        }
        logits.push_back(sum);
      }
    }
    return logits;
  }

  // What the kernel makes with and without biases.
  [[nodiscard]] Values made(std::size_t position, bool has_bias) {
    VocabularyLogits op{.geometry = geometry_};
    op.geometry.bias = has_bias;
    Block x = tensor(geometry_.x, x_);
    Block table = parameters(ParameterSpec{geometry_.table()}, table_);
    Block bias = parameters(ParameterSpec{geometry_.bias_parameters()}, bias_);
    Block logits = bytes(float_bytes(op.logit_count()));
    std::vector<Block*> operands{&x, &table};
    if (has_bias) operands.push_back(&bias);
    operands.push_back(&logits);
    run(op, operands, {.position = position});
    const std::vector<float> numbers = logits.template numbers<float>();
    return {numbers.begin(), numbers.end()};
  }

  VocabularyGeometry geometry_;
  Values x_;
  Values table_;
  Values bias_;
};

TEST_P(Logits, AreProductsOfOneTokenWithEachRow) {
  const std::size_t position = GetParam().position;
  for (const bool has_bias : {false, true}) {
    host::expect_near(made(position, has_bias), wanted(position, has_bias),
                      host::sum_tolerance(GetParam().width + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(OfSizes, Logits,
                         ::testing::Values(LogitsCase{1, 1, 3, 2, 0}, LogitsCase{1, 9, 5, 11, 8},
                                           LogitsCase{2, 7, 33, 19, 0}, LogitsCase{3, 5, 48, 8, 3},
                                           LogitsCase{1, 4, 70, 257, 1}));

}  // namespace
}  // namespace spillway::test
