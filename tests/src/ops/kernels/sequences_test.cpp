// Operations on sequences. layer_golden_test.cpp compares the host's results with PyTorch's. Here,
// a device must have the host's results, and each must repeat its own bits. The logits of one token
// are compared with a plain loop.
#include <cmath>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

// Sums of up to 131 products of numbers in [-1, 1], and exponentials of such sums.
constexpr double kSumTolerance = 3e-5;
// The same sums, divided by a row's deviation.
constexpr double kNormTolerance = 1e-4;

// Returns the additional error of a result that depends on rounded tensors: in bfloat16, 2^-9 of
// each, with a total of `weight`.
double rounding_of(double weight) { return has_float_tensors() ? 0 : std::ldexp(weight, -9); }

TensorShape texts(std::size_t batch, std::size_t tokens, std::size_t width) {
  return {.batch = batch, .image = nets::sequence(tokens, width)};
}

class Sequences : public KernelRunner {
 protected:
  [[nodiscard]] Block drawn(const TensorShape& shape, unsigned seed) {
    return tensor(shape, random_values(shape.elements(), seed));
  }
  [[nodiscard]] Block drawn(const ParameterSpec& spec, unsigned seed) {
    return parameters(spec, host::random_values(element_count(spec), seed));
  }
  // Expects what the host makes of both operations. The backward one reads dy, and x if it
  // `reads_x`.
  template <class Forward, class Backward>
  void expect_both_on_host(const Forward& forward, const TensorShape& x_shape,
                           const TensorShape& y_shape, const Backward& backward, bool reads_x,
                           double tolerance = 0) {
    Block x = drawn(x_shape, 1);
    Block y = tensor(y_shape);
    run(forward, {&x, &y});
    expect_same_on_host(y_shape, y, tolerance);
    Block dy = drawn(y_shape, 2);
    Block dx = tensor(x_shape);
    std::vector<Block*> operands{&dy, &dx};
    if (reads_x) operands.insert(operands.begin(), &x);
    run(backward, operands);
    expect_same_on_host(x_shape, dx, tolerance);
  }
  [[nodiscard]] static std::vector<float> drawn_tokens(std::size_t count, std::size_t vocabulary) {
    std::vector<float> tokens;
    for (std::size_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<float>((i * i * 7 + 3) % vocabulary));
    }
    return tokens;
  }
};

class Embeddings : public Sequences, public ::testing::WithParamInterface<TensorShape> {};

TEST_P(Embeddings, AreRowsOfTheTable) {
  constexpr std::size_t kVocabulary = 11;
  const EmbeddingForward op{.y = GetParam(), .vocabulary = kVocabulary};
  const Values table = host::random_values(kVocabulary * op.y.image.channels, 1);
  const std::vector<float> drawn = drawn_tokens(op.tokens().elements(), kVocabulary);
  Block tokens = numbers(drawn);
  Block block = parameters(op.parameters(), table);
  Block y = tensor(op.y);
  run(op, {&tokens, &block, &y});
  const Values made = values(op.y, y);
  Values wanted;
  const std::size_t width = op.y.image.channels;
  for (std::size_t n = 0; n < op.y.batch; ++n) {
    for (std::size_t c = 0; c < width; ++c) {
      for (std::size_t t = 0; t < op.y.image.height; ++t) {
        const auto row = static_cast<std::size_t>(drawn[n * op.y.image.height + t]);
        wanted.push_back(table[row * width + c]);
      }
    }
  }
  expect_near(made, wanted, 0);
}

TEST_P(Embeddings, AddUpTheirGradientsInOrder) {
  constexpr std::size_t kVocabulary = 5;
  EmbeddingBackward op{.y = GetParam(), .vocabulary = kVocabulary};
  const ParameterSpec spec = op.forward().parameters();
  const std::size_t count = op.forward().tokens().elements();
  Block tokens = numbers(drawn_tokens(count, kVocabulary));
  Block dy = drawn(op.y, 2);
  Block gradient = parameters(spec);
  // A GPU adds up to 64 equal ones in order.
  const double tolerance = count <= 64 ? 0 : product_tolerance(2 * count);
  run(op, {&tokens, &dy, &gradient});
  expect_same_on_host(spec, gradient, tolerance);
  op.accumulates = true;
  run(op, {&tokens, &dy, &gradient, &gradient});
  expect_same_on_host(spec, gradient, tolerance);
}

// More tokens than a block has threads, and numbers of several digits.
TEST_F(Sequences, AddUpTheGradientsOfManyTokens) {
  const EmbeddingBackward op{.y = texts(3, 400, 12), .vocabulary = 1000};
  const ParameterSpec spec = op.forward().parameters();
  Block tokens = numbers(drawn_tokens(1200, 1000));
  Block dy = drawn(op.y, 2);
  Block gradient = parameters(spec);
  run(op, {&tokens, &dy, &gradient});
  expect_same_on_host(spec, gradient);
}

// A GPU adds the gradients of a frequent token up in chunks.
TEST_F(Sequences, AddUpTheGradientsOfFrequentTokens) {
  for (const std::size_t vocabulary : {1U, 3U}) {
    const EmbeddingBackward op{.y = texts(3, 400, 12), .vocabulary = vocabulary};
    const ParameterSpec spec = op.forward().parameters();
    Block tokens = numbers(drawn_tokens(1200, vocabulary));
    Block dy = drawn(op.y, 2);
    Block gradient = parameters(spec);
    run(op, {&tokens, &dy, &gradient});
    expect_same_on_host(spec, gradient, product_tolerance(1200));
  }
}

TEST_P(Embeddings, OfNoTokenAreNoNumbers) {
  const EmbeddingForward op{.y = GetParam(), .vocabulary = 4};
  std::vector<float> drawn = drawn_tokens(op.tokens().elements(), 4);
  drawn.front() = 4;
  Block tokens = numbers(drawn);
  Block table = this->drawn(op.parameters(), 1);
  Block y = tensor(op.y);
  run(op, {&tokens, &table, &y});
  EXPECT_TRUE(std::isnan(values(op.y, y).front()));
}

TEST_P(Embeddings, OfPositionsAreAdded) {
  const TensorShape& x = GetParam();
  for (const std::size_t segments : {0U, 2U}) {
    const PositionParameters spec{
        .positions = x.image.height + 2, .segments = segments, .features = x.image.channels};
    Block from = drawn(x, 3);
    Block table = drawn(ParameterSpec{spec}, 4);
    Block y = tensor(x);
    run(PositionsForward{.x = x, .parameters = spec}, {&from, &table, &y});
    expect_same_on_host(x, y);
    run(PositionsForward{.x = x, .parameters = spec}, {&from, &table, &from});
    EXPECT_EQ(from.bytes(), y.bytes()) << "in place";
    Block dy = drawn(x, 5);
    Block gradient = parameters(ParameterSpec{spec});
    run(PositionsBackward{.x = x, .parameters = spec}, {&dy, &gradient});
    expect_same_on_host(ParameterSpec{spec}, gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(OfSizes, Embeddings,
                         ::testing::Values(texts(1, 1, 3), texts(2, 7, 5), texts(3, 5, 48),
                                           texts(2, 17, 33), texts(4, 300, 12)));

class RowNorms : public Sequences, public ::testing::WithParamInterface<TensorShape> {};

TEST_P(RowNorms, GoBothWays) {
  for (const bool is_centred : {true, false}) {
    const RowNormForward forward{.x = GetParam(), .epsilon = 1e-3F, .is_centred = is_centred};
    const ParameterSpec spec = forward.parameters();
    Block x = drawn(forward.x, 1);
    Block gamma = drawn(spec, 2);
    Block y = tensor(forward.x);
    Block saved = saved_by(forward);
    run(forward, {&x, &gamma, &y, &saved});
    expect_same_on_host(forward.x, y, kNormTolerance);
    Block dy = drawn(forward.x, 3);
    Block dx = tensor(forward.x);
    Block gradient = parameters(spec);
    RowNormBackward backward{.x = forward.x, .epsilon = forward.epsilon, .is_centred = is_centred};
    run(backward, {&x, &dy, &gamma, &saved, &dx, &gradient});
    expect_same_on_host(forward.x, dx, kNormTolerance);
    expect_same_on_host(spec, gradient, kNormTolerance);
    Block sum = drawn(forward.x, 4);
    Block wanted = tensor(forward.x);
    run(AddGradients{.x = forward.x}, {&sum, &dx, &wanted});
    backward.accumulates = true;
    run(backward, {&x, &dy, &gamma, &saved, &sum, &sum, &gradient});
    EXPECT_EQ(sum.bytes(), wanted.bytes()) << "added to a sum";
    backward.accumulates = false;
    run(backward, {&x, &dy, &gamma, &saved, &dy, &gradient});
    EXPECT_EQ(dy.bytes(), dx.bytes()) << "over dy";
  }
}

INSTANTIATE_TEST_SUITE_P(OfSizes, RowNorms,
                         ::testing::Values(texts(1, 1, 5), texts(2, 7, 33), texts(3, 70, 48),
                                           texts(1, 3, 700), texts(1, 9, 1100), texts(1, 3, 2500),
                                           texts(1, 2, 9000)));

class Gates : public Sequences, public ::testing::WithParamInterface<TensorShape> {};

TEST_P(Gates, GoBothWays) {
  const SwigluForward forward{.y = GetParam()};
  expect_both_on_host(forward, forward.x(), forward.y, SwigluBackward{.y = forward.y},
                      /*reads_x=*/true, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(OfSizes, Gates,
                         ::testing::Values(texts(1, 1, 3), texts(2, 5, 19), texts(3, 4, 32)));

struct AttentionCase {
  std::size_t batch;
  std::size_t tokens;
  std::size_t width;  // per head
  Heads heads;
  bool is_causal;
  float dropout;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const AttentionCase& c, std::ostream* out) {
  *out << c.batch << 'x' << c.tokens << ", " << c.heads.heads << '/' << c.heads.kv_heads
       << " heads of " << c.width << (c.is_causal ? ", causal" : "") << ", dropout " << c.dropout;
}

class Attention : public Sequences, public ::testing::WithParamInterface<AttentionCase> {
 protected:
  [[nodiscard]] static AttentionGeometry geometry() {
    const AttentionCase& c = GetParam();
    return {.x = texts(c.batch, c.tokens, (c.heads.heads + 2 * c.heads.kv_heads) * c.width),
            .heads = c.heads,
            .is_causal = c.is_causal,
            .dropout = c.dropout,
            .stream = 3};
  }
};

TEST_P(Attention, GoesBothWays) {
  AttentionForward forward{.geometry = geometry()};
  forward.geometry.first_sample = 2;
  const TensorShape x_shape = forward.geometry.x;
  const TensorShape y_shape = forward.geometry.y();
  const StepContext context{.seed = 7, .step = 5};
  Block x = drawn(x_shape, 1);
  Block y = tensor(y_shape);
  Block saved = saved_by(forward);
  run(forward, {&x, &y, &saved}, context);
  expect_same_on_host(y_shape, y, kSumTolerance);
  Block again = tensor(y_shape);
  Block saved_again = saved_by(forward);
  run(forward, {&x, &again, &saved_again}, context, /*is_recomputation=*/true);
  EXPECT_EQ(again.bytes(), y.bytes());
  EXPECT_EQ(saved_again.bytes(), saved.bytes());
  Block dy = drawn(y_shape, 2);
  Block dx = tensor(x_shape);
  run(AttentionBackward{.geometry = forward.geometry}, {&x, &y, &dy, &saved, &dx}, context);
  // Each score's gradient contains the sum over a head of y, which is at most 1, times 1 /
  // sqrt(width).
  const double width = static_cast<double>(GetParam().width);
  expect_same_on_host(x_shape, dx, kSumTolerance + rounding_of(2 * std::sqrt(width)));
}

INSTANTIATE_TEST_SUITE_P(OfSizes, Attention,
                         ::testing::Values(AttentionCase{1, 1, 3, {1, 1}, true, 0},
                                           AttentionCase{2, 9, 5, {2, 2}, true, 0},
                                           AttentionCase{2, 33, 8, {4, 2}, false, 0},
                                           AttentionCase{1, 40, 16, {3, 1}, true, 0.25F},
                                           AttentionCase{2, 35, 40, {2, 1}, false, 0.5F},
                                           AttentionCase{1, 131, 4, {1, 1}, true, 0.1F}));

class Turns : public Sequences, public ::testing::WithParamInterface<AttentionCase> {};

TEST_P(Turns, GoBothWays) {
  const AttentionCase& c = GetParam();
  const TensorShape x_shape =
      texts(c.batch, c.tokens, (c.heads.heads + 2 * c.heads.kv_heads) * c.width);
  Block x = drawn(x_shape, 1);
  Block y = tensor(x_shape);
  run(RotaryForward{.x = x_shape, .heads = c.heads, .base = 100}, {&x, &y});
  expect_same_on_host(x_shape, y, 1e-6);
  Block back = tensor(x_shape);
  run(RotaryBackward{.x = x_shape, .heads = c.heads, .base = 100}, {&y, &back});
  expect_same_on_host(x_shape, back, 1e-6 + rounding_of(2));  // for two numbers of up to sqrt(2)
  Block dy = drawn(x_shape, 2);
  Block dx = tensor(x_shape);
  run(RotaryBackward{.x = x_shape, .heads = c.heads, .base = 100}, {&dy, &dx});
  run(RotaryBackward{.x = x_shape, .heads = c.heads, .base = 100}, {&dy, &dy});
  EXPECT_EQ(dy.bytes(), dx.bytes()) << "over dy";
  run(RotaryForward{.x = x_shape, .heads = c.heads, .base = 100}, {&x, &x});
  EXPECT_EQ(x.bytes(), y.bytes()) << "in place";
}

INSTANTIATE_TEST_SUITE_P(OfSizes, Turns,
                         ::testing::Values(AttentionCase{1, 1, 2, {1, 1}, true, 0},
                                           AttentionCase{2, 9, 6, {2, 2}, true, 0},
                                           AttentionCase{1, 33, 8, {4, 2}, true, 0}));

TEST_F(Sequences, AreMadeOfImages) {
  const TensorShape image{.batch = 2, .image = {.channels = 19, .height = 3, .width = 4}};
  for (const bool class_token : {true, false}) {
    const ImageTokensForward forward{.x = image, .class_token = class_token};
    const ParameterSpec spec = ClassTokenParameters{.features = image.image.channels};
    Block x = drawn(image, 1);
    Block token = drawn(spec, 2);
    Block y = tensor(forward.y());
    Block dy = drawn(forward.y(), 3);
    Block dx = tensor(image);
    Block gradient = parameters(spec);
    std::vector<Block*> made{&x, &y};
    std::vector<Block*> back{&dy, &dx};
    if (class_token) {
      made.insert(made.begin() + 1, &token);
      back.push_back(&gradient);
    }
    run(forward, made);
    expect_same_on_host(forward.y(), y);
    run(ImageTokensBackward{.x = image, .class_token = class_token}, back);
    expect_same_on_host(image, dx);
    if (class_token) expect_same_on_host(spec, gradient);
  }
}

TEST_F(Sequences, BeginWithAToken) {
  const FirstTokenForward forward{.x = texts(3, 5, 19)};
  expect_both_on_host(forward, forward.x, forward.y(), FirstTokenBackward{.x = forward.x},
                      /*reads_x=*/false);
}

struct LogitsCase {
  std::size_t batch;
  std::size_t tokens;
  std::size_t width;
  std::size_t vocabulary;
  std::size_t position;
};

// Name that gtest looks for.
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

  // Returns the expected logits of token `t` of each sample. Values of x are (N, C, T).
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

  // Returns the kernel's results, with or without biases.
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
