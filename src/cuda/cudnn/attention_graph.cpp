#include "src/cuda/cudnn/attention_graph.h"

#include <algorithm>
#include <utility>

#include "src/cuda/layout/layout.h"

namespace spillway::cuda {
namespace {

using HeadDims = std::array<std::int64_t, 4>;

constexpr cudnnDataType_t kElement = CUDNN_DATA_BFLOAT16;
// First id of virtual tensors, which exist only within the kernel.
constexpr std::int64_t kFirstWithin = 1000;

std::int64_t signed_size(std::size_t n) { return static_cast<std::int64_t>(n); }

HeadDims dense(const HeadDims& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

HeadDims transposed(HeadDims dims) {
  std::swap(dims[2], dims[3]);
  return dims;
}

// Collects tensors and nodes. Dimensions of queries are (N, heads, tokens, width).
class AttentionNodes {
 public:
  explicit AttentionNodes(const AttentionProblem& problem)
      : heads_{signed_size(problem.heads.heads)},
        kv_heads_{signed_size(problem.heads.kv_heads)},
        tokens_{signed_size(problem.x.image.height)},
        width_{signed_size(problem.heads.width(problem.x))},
        batch_{signed_size(problem.x.batch)},
        stride_{signed_size(Layout::padded(problem.x.image.channels))},
        is_causal_{problem.is_causal} {}

  void add_forward();
  void add_backward();
  [[nodiscard]] CudnnGraph graph(const CudnnTarget& target) const {
    return {target, tensors_, nodes_};
  }

 private:
  [[nodiscard]] HeadDims queries() const { return {batch_, heads_, tokens_, width_}; }
  [[nodiscard]] HeadDims keys() const { return {batch_, kv_heads_, tokens_, width_}; }
  [[nodiscard]] HeadDims scores() const { return {batch_, heads_, tokens_, tokens_}; }
  [[nodiscard]] HeadDims rows() const { return {batch_, heads_, tokens_, 1}; }
  // Strides of a part of x's rows, and of y's rows.
  [[nodiscard]] HeadDims part_strides() const { return {tokens_ * stride_, width_, stride_, 1}; }
  [[nodiscard]] HeadDims result_strides() const {
    return {tokens_ * heads_ * width_, width_, heads_ * width_, 1};
  }

  void tensor(std::int64_t id, cudnnDataType_t type, const HeadDims& dims,
              const HeadDims& strides) {
    tensors_.push_back({.id = id, .type = type, .dims = dims, .strides = strides});
  }
  void number(std::int64_t id) {
    tensors_.push_back({.id = id,
                        .type = CUDNN_DATA_FLOAT,
                        .dims = {1, 1, 1, 1},
                        .strides = HeadDims{1, 1, 1, 1},
                        .is_by_value = true});
  }
  std::int64_t within(cudnnDataType_t type, const HeadDims& dims, const HeadDims& strides) {
    tensors_.push_back(
        {.id = next_, .type = type, .dims = dims, .is_virtual = true, .strides = strides});
    return next_++;
  }
  std::int64_t floats(const HeadDims& dims) { return within(CUDNN_DATA_FLOAT, dims, dense(dims)); }

  std::int64_t product(std::int64_t a, std::int64_t b) {
    const std::int64_t c = floats(scores());
    nodes_.emplace_back(MatmulNode{.a = a, .b = b, .c = c});
    return c;
  }
  void pointwise_to(std::int64_t y, cudnnPointwiseMode_t mode, std::int64_t x,
                    std::optional<std::int64_t> b = std::nullopt) {
    nodes_.emplace_back(PointwiseNode{.mode = mode, .x = x, .b = b, .y = y});
  }
  std::int64_t pointwise(const HeadDims& dims, cudnnPointwiseMode_t mode, std::int64_t x,
                         std::optional<std::int64_t> b = std::nullopt) {
    const std::int64_t y = floats(dims);
    pointwise_to(y, mode, x, b);
    return y;
  }
  std::int64_t reduced(cudnnReduceTensorOp_t mode, std::int64_t x) {
    const std::int64_t y = floats(rows());
    nodes_.emplace_back(ReductionNode{.mode = mode, .x = x, .y = y});
    return y;
  }
  std::int64_t indices(std::int64_t x, std::int64_t axis) {
    const std::int64_t y = within(CUDNN_DATA_INT32, scores(), dense(scores()));
    nodes_.emplace_back(PointwiseNode{
        .mode = CUDNN_POINTWISE_GEN_INDEX, .x = x, .b = std::nullopt, .y = y, .axis = axis});
    return y;
  }
  std::int64_t masked(std::int64_t x);
  std::int64_t transposed_scores(std::int64_t x) {
    const std::int64_t y = within(kElement, scores(), transposed(dense(scores())));
    nodes_.emplace_back(ReshapeNode{.x = x, .y = y});
    return y;
  }
  void sum_over_queries(std::int64_t scores, std::int64_t rows, std::int64_t gradient);
  std::int64_t add_means();

  std::int64_t heads_;
  std::int64_t kv_heads_;
  std::int64_t tokens_;
  std::int64_t width_;
  std::int64_t batch_;
  std::int64_t stride_;
  bool is_causal_;
  std::vector<GraphTensor> tensors_;
  std::vector<GraphNode> nodes_;
  std::int64_t next_ = kFirstWithin;
};

// Sets scores to minus infinity where a key comes after its query.
std::int64_t AttentionNodes::masked(std::int64_t x) {
  if (!is_causal_) return x;
  number(kTensorMasked);
  const std::int64_t query = indices(x, 2);
  const std::int64_t key = indices(x, 3);
  const std::int64_t is_seen = within(CUDNN_DATA_BOOLEAN, scores(), dense(scores()));
  nodes_.emplace_back(PointwiseNode{.mode = CUDNN_POINTWISE_CMP_GE,
                                    .x = query,
                                    .b = key,
                                    .y = is_seen,
                                    .computed_in = CUDNN_DATA_BOOLEAN});
  const std::int64_t y = floats(scores());
  nodes_.emplace_back(PointwiseNode{.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                    .x = x,
                                    .b = kTensorMasked,
                                    .y = y,
                                    .selector = is_seen});
  return y;
}

// S = Q K^T scale, P = exp(S - largest) / sum, O = P V. Saves largest + log(sum).
void AttentionNodes::add_forward() {
  tensor(kTensorQueries, kElement, queries(), part_strides());
  tensor(kTensorKeys, kElement, transposed(keys()), transposed(part_strides()));
  tensor(kTensorValues, kElement, keys(), part_strides());
  tensor(kTensorResult, kElement, queries(), result_strides());
  tensor(kTensorStatistics, CUDNN_DATA_FLOAT, rows(), dense(rows()));
  number(kTensorScale);
  const std::int64_t all = product(kTensorQueries, kTensorKeys);
  const std::int64_t seen = masked(pointwise(scores(), CUDNN_POINTWISE_MUL, all, kTensorScale));
  const std::int64_t largest = reduced(CUDNN_REDUCE_TENSOR_MAX, seen);
  const std::int64_t below = pointwise(scores(), CUDNN_POINTWISE_SUB, seen, largest);
  const std::int64_t powers = pointwise(scores(), CUDNN_POINTWISE_EXP, below);
  const std::int64_t sum = reduced(CUDNN_REDUCE_TENSOR_ADD, powers);
  const std::int64_t logarithm = pointwise(rows(), CUDNN_POINTWISE_LOG, sum);
  pointwise_to(kTensorStatistics, CUDNN_POINTWISE_ADD, largest, logarithm);
  const std::int64_t weights = within(kElement, scores(), dense(scores()));
  pointwise_to(weights, CUDNN_POINTWISE_DIV, powers, sum);
  nodes_.emplace_back(MatmulNode{.a = weights, .b = kTensorValues, .c = kTensorResult});
}

// gradient = scores^T rows, summed over all heads that share a key head.
void AttentionNodes::sum_over_queries(std::int64_t scores, std::int64_t rows,
                                      std::int64_t gradient) {
  const std::int64_t by_key = transposed_scores(scores);
  if (heads_ == kv_heads_) {
    nodes_.emplace_back(MatmulNode{.a = by_key, .b = rows, .c = gradient});
    return;
  }
  const std::int64_t each = within(kElement, queries(), dense(queries()));
  nodes_.emplace_back(MatmulNode{.a = by_key, .b = rows, .c = each});
  nodes_.emplace_back(ReductionNode{.mode = CUDNN_REDUCE_TENSOR_ADD, .x = each, .y = gradient});
}

// Row sums of dO O.
std::int64_t AttentionNodes::add_means() {
  number(kTensorOne);
  tensor(kTensorMeans, CUDNN_DATA_FLOAT, rows(), dense(rows()));
  const std::int64_t each = within(CUDNN_DATA_FLOAT, queries(), result_strides());
  pointwise_to(each, CUDNN_POINTWISE_MUL, kTensorResultGradient, kTensorResult);
  const std::int64_t sums = reduced(CUDNN_REDUCE_TENSOR_ADD, each);
  pointwise_to(kTensorMeans, CUDNN_POINTWISE_MUL, sums, kTensorOne);
  return kTensorMeans;
}

// P = exp(S - saved), dV = P^T dO, dS = P (dO V^T - means) scale, dK = dS^T Q, dQ = dS K.
void AttentionNodes::add_backward() {
  tensor(kTensorQueries, kElement, queries(), part_strides());
  tensor(kTensorKeys, kElement, transposed(keys()), transposed(part_strides()));
  tensor(kTensorValues, kElement, transposed(keys()), transposed(part_strides()));
  tensor(kTensorResult, kElement, queries(), result_strides());
  tensor(kTensorResultGradient, kElement, queries(), result_strides());
  tensor(kTensorStatistics, CUDNN_DATA_FLOAT, rows(), dense(rows()));
  number(kTensorScale);
  tensor(kTensorQueryGradients, kElement, queries(), part_strides());
  tensor(kTensorKeyGradients, kElement, keys(), part_strides());
  tensor(kTensorValueGradients, kElement, keys(), part_strides());
  const std::int64_t means = add_means();
  const std::int64_t all =
      pointwise(scores(), CUDNN_POINTWISE_MUL, product(kTensorQueries, kTensorKeys), kTensorScale);
  const std::int64_t below = pointwise(scores(), CUDNN_POINTWISE_SUB, all, kTensorStatistics);
  const std::int64_t weights = pointwise(scores(), CUDNN_POINTWISE_EXP, masked(below));
  sum_over_queries(weights, kTensorResultGradient, kTensorValueGradients);
  const std::int64_t dweights = product(kTensorResultGradient, kTensorValues);
  const std::int64_t beside = pointwise(scores(), CUDNN_POINTWISE_SUB, dweights, means);
  const std::int64_t slopes = pointwise(scores(), CUDNN_POINTWISE_MUL, beside, weights);
  const std::int64_t dscores = pointwise(scores(), CUDNN_POINTWISE_MUL, slopes, kTensorScale);
  sum_over_queries(dscores, kTensorQueries, kTensorKeyGradients);
  const std::int64_t by_token = within(kElement, keys(), part_strides());
  nodes_.emplace_back(ReshapeNode{.x = kTensorKeys, .y = by_token});
  nodes_.emplace_back(MatmulNode{.a = dscores, .b = by_token, .c = kTensorQueryGradients});
}

}  // namespace

bool may_be_cudnns(Precision precision, const AttentionGeometry& geometry) {
  return precision == Precision::kBf16 && geometry.dropout == 0 &&
         geometry.heads.width(geometry.x) % Layout::kChannelBlock == 0;
}

std::string describe(const AttentionProblem& problem) {
  const std::string pass = problem.pass == AttentionPass::kForward ? "forward pass" : "gradient";
  return "attention's " + pass + ", " + std::to_string(problem.x.batch) + " x " +
         std::to_string(problem.x.image.height) + " tokens, " +
         std::to_string(problem.heads.heads) + " heads of " +
         std::to_string(problem.heads.width(problem.x));
}

CudnnGraph attention_graph(const CudnnTarget& target, const AttentionProblem& problem) {
  AttentionNodes nodes{problem};
  if (problem.pass == AttentionPass::kForward) {
    nodes.add_forward();
  } else {
    nodes.add_backward();
  }
  return nodes.graph(target);
}

}  // namespace spillway::cuda
