#pragma once

// Operations of cuDNN's graphs: which descriptions fit together, and their arithmetic in float.

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace spillway::emulated {

/// An error of the caller: descriptors that do not fit, or memory that must not be used that way.
class CallerMistake : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A correct request that this stand-in does not support.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws: CallerMistake with `sentence` unless `holds`.
inline void require(bool holds, const std::string& sentence) {
  if (!holds) throw CallerMistake{sentence};
}

using Dims = std::array<std::int64_t, 4>;

/// A tensor of a graph.
struct CudnnTensor {
  std::int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Dims dims{};     ///< (N, C, H, W)
  Dims strides{};  ///< elements between neighbours in each dimension
  std::int64_t alignment = 0;
  bool is_virtual = false;   ///< exists only within a kernel, not in memory
  bool is_by_value = false;  ///< a number that the caller passes in host memory

  /// Returns the number of elements.
  [[nodiscard]] std::size_t count() const;
  /// Returns the bytes from the first element to the end of the last.
  [[nodiscard]] std::size_t extent() const;

  friend bool operator==(const CudnnTensor&, const CudnnTensor&) = default;
};

/// Returns text for messages: "tensor 120 (16x3x28x28)".
[[nodiscard]] std::string describe(const CudnnTensor& tensor);

/// Returns true if two tensors share a byte. Gaps between the rows of one may hold the other.
[[nodiscard]] bool overlap(const CudnnTensor& a, const void* at_a, const CudnnTensor& b,
                           const void* at_b);

enum class CudnnPass { kForward, kBackwardData, kBackwardFilter };

/// A cross-correlation. Its pass computes y, x or w.
struct ConvolutionOperation {
  CudnnPass pass = CudnnPass::kForward;
  CudnnTensor x, w, y;
  std::array<std::int64_t, 2> before{}, after{}, stride{}, dilation{};
  float alpha = 1, beta = 0;  ///< result = alpha convolution + beta (content before)

  [[nodiscard]] std::vector<CudnnTensor> inputs() const;
  [[nodiscard]] const CudnnTensor& output() const;
};

/// y = mode(alpha1 x, alpha2 b), or x where the selector is true and b elsewhere.
struct PointwiseOperation {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  bool keeps_nan = false;                 ///< otherwise a ReLU turns it into zero
  std::optional<std::int64_t> axis = {};  ///< of the index that is computed
  CudnnTensor x;
  std::optional<CudnnTensor> b = {}, selector = {};
  CudnnTensor y;
  float alpha1 = 1, alpha2 = 1;

  [[nodiscard]] std::vector<CudnnTensor> inputs() const;
  [[nodiscard]] const CudnnTensor& output() const { return y; }
};

/// c = a b over the last two dimensions. Fewer heads (the second dimension) serve several each.
struct MatmulOperation {
  CudnnTensor a, b, c;

  [[nodiscard]] std::vector<CudnnTensor> inputs() const { return {a, b}; }
  [[nodiscard]] const CudnnTensor& output() const { return c; }
};

/// y = x reduced along dimensions in which y has size one, or fewer heads.
struct ReductionOperation {
  cudnnReduceTensorOp_t mode = CUDNN_REDUCE_TENSOR_ADD;
  CudnnTensor x, y;

  [[nodiscard]] std::vector<CudnnTensor> inputs() const { return {x}; }
  [[nodiscard]] const CudnnTensor& output() const { return y; }
};

/// y is x's memory, read with y's dimensions and strides.
struct ReshapeOperation {
  CudnnTensor x, y;

  [[nodiscard]] std::vector<CudnnTensor> inputs() const { return {x}; }
  [[nodiscard]] const CudnnTensor& output() const { return y; }
};

using CudnnOperation = std::variant<ConvolutionOperation, PointwiseOperation, MatmulOperation,
                                    ReductionOperation, ReshapeOperation>;

[[nodiscard]] std::vector<CudnnTensor> inputs_of(const CudnnOperation& operation);
[[nodiscard]] const CudnnTensor& output_of(const CudnnOperation& operation);

/// Check that a description is consistent. Throw: CallerMistake; NotSupported.
void check(const CudnnTensor& tensor);
void check(const CudnnOperation& operation);

/// Operations that run as one kernel.
class OperationGraph {
 public:
  /// Throws: CallerMistake if the operations do not form a graph.
  explicit OperationGraph(std::vector<CudnnOperation> operations);

  /// Returns the operations in an order in which they can run.
  [[nodiscard]] const std::vector<CudnnOperation>& operations() const { return operations_; }
  /// Returns the tensors by their ids.
  [[nodiscard]] const std::map<std::int64_t, CudnnTensor>& tensors() const { return tensors_; }
  /// Returns true if an operation computes the tensor.
  [[nodiscard]] bool is_written(std::int64_t id) const { return written_.contains(id); }

 private:
  void add(const CudnnTensor& tensor);
  void sort();

  std::vector<CudnnOperation> operations_;
  std::map<std::int64_t, CudnnTensor> tensors_;
  std::set<std::int64_t> written_;
};

/// The addresses of tensors in memory and the values of numbers, by id.
struct TensorBindings {
  std::map<std::int64_t, void*> memory;
  std::map<std::int64_t, float> numbers;
};

/// Runs the operations. Sums are float; tensors of bfloat16 are rounded, also virtual ones.
void compute(const OperationGraph& graph, const TensorBindings& bindings);

}  // namespace spillway::emulated
