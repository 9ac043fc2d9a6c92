#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "src/cuda/cudnn/cudnn_descriptor.h"

namespace spillway::cuda {

// Uses cuDNN's graph API without NVIDIA's cudnn-frontend. Those headers (44,000 lines, from a
// Python package) hide what is needed here: the engines with settings, workspaces and notes, for a
// device that need not be present. The few descriptors needed are in this file and the next.

/// The device that plans are made for: that of a handle, or a described one that needs neither a
/// driver nor to exist.
class CudnnTarget {
 public:
  /// Requires: `handle` outlives the target and everything made for it.
  explicit CudnnTarget(cudnnHandle_t handle) : handle_{handle} {}
  /// `properties` is the JSON of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. Throws: CudnnError if
  /// cuDNN does not accept it, or is older than 9.8.
  [[nodiscard]] static CudnnTarget described(std::string_view properties);

  [[nodiscard]] cudnnHandle_t handle() const { return handle_; }
  /// Returns nullopt for a handle's device.
  [[nodiscard]] const std::optional<CudnnDescriptor>& properties() const { return properties_; }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<CudnnDescriptor> properties_;
};

/// A tensor of a graph. `id` identifies it within the graph.
struct GraphTensor {
  std::int64_t id;
  cudnnDataType_t type;
  std::array<std::int64_t, 4> dims;  ///< (N, C, H, W), padding included
  bool is_virtual = false;           ///< exists only within a kernel, not in memory
  /// Elements between neighbours in each dimension; NHWC by default.
  std::optional<std::array<std::int64_t, 4>> strides = {};
  bool is_by_value = false;  ///< a scalar that execution reads from host memory
};

enum class ConvolutionPass { kForward, kBackwardData, kBackwardWeights };

/// A cross-correlation with float sums. The pass says which of x, w and y is computed from the
/// other two. In backward passes, gradients take the place of their tensors.
struct ConvolutionNode {
  ConvolutionPass pass;
  std::int64_t x;
  std::int64_t w;
  std::int64_t y;
  std::array<std::int64_t, 2> stride;
  std::array<std::int64_t, 2> padding;
  std::array<std::int64_t, 2> dilation;
};

/// y = mode(x) or mode(x, b); `b` is broadcast along dimensions of size one. Computes in float
/// unless `computed_in` differs. A ReLU keeps a NaN.
struct PointwiseNode {
  cudnnPointwiseMode_t mode;
  std::int64_t x;
  std::optional<std::int64_t> b;
  std::int64_t y;
  std::optional<std::int64_t> selector = {};  ///< true: x, false: b
  std::optional<std::int64_t> axis = {};      ///< y is the index along this axis
  cudnnDataType_t computed_in = CUDNN_DATA_FLOAT;
};

/// c = a b over the last two dimensions, with float sums. If `b` has fewer heads (the second
/// dimension) than `a`, each serves several heads of `a`.
struct MatmulNode {
  std::int64_t a;
  std::int64_t b;
  std::int64_t c;
};

/// y = x reduced, in float, along dimensions where y has size one or fewer heads.
struct ReductionNode {
  cudnnReduceTensorOp_t mode;
  std::int64_t x;
  std::int64_t y;
};

/// y is x with y's dimensions and strides, without a copy; for example, transposed.
struct ReshapeNode {
  std::int64_t x;
  std::int64_t y;
};

using GraphNode =
    std::variant<ConvolutionNode, PointwiseNode, MatmulNode, ReductionNode, ReshapeNode>;

/// Operations that cuDNN is asked to run as a single kernel.
class CudnnGraph {
 public:
  /// Requires: the nodes' tensors are among `tensors`. Throws: CudnnError if cuDNN refuses.
  CudnnGraph(const CudnnTarget& target, std::span<const GraphTensor> tensors,
             std::span<const GraphNode> nodes);

  [[nodiscard]] const CudnnDescriptor& descriptor() const { return graph_; }

 private:
  void add(const GraphTensor& tensor);
  void add(const ConvolutionNode& node);
  void add(const PointwiseNode& node);
  void add(const MatmulNode& node);
  void add(const ReductionNode& node);
  void add(const ReshapeNode& node);

  std::map<std::int64_t, CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> settings_;  // referred to by operations
  std::vector<CudnnDescriptor> operations_;
  CudnnDescriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

}  // namespace spillway::cuda
