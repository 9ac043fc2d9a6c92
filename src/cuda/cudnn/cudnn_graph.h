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

// cuDNN's graph API without NVIDIA's cudnn-frontend: its headers (44,000 lines, from a Python
// package) hide what is wanted here, the engines with their settings, workspaces and notes, for a
// device that need not be there; the few descriptors it takes are in this file and the next.

/// What plans are made for: the device of a handle, or one that is only described and needs neither
/// a driver nor to exist.
class CudnnTarget {
 public:
  /// Requires: `handle` outlives the target and all that is made for it.
  explicit CudnnTarget(cudnnHandle_t handle) : handle_{handle} {}
  /// `properties`: the JSON of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. Throws: CudnnError when
  /// cuDNN does not take it, or is older than 9.8 and cannot.
  [[nodiscard]] static CudnnTarget described(std::string_view properties);

  [[nodiscard]] cudnnHandle_t handle() const { return handle_; }
  /// Nothing for a handle's device.
  [[nodiscard]] const std::optional<CudnnDescriptor>& properties() const { return properties_; }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<CudnnDescriptor> properties_;
};

/// A tensor of a graph. `id` names it within the graph.
struct GraphTensor {
  std::int64_t id;
  cudnnDataType_t type;
  std::array<std::int64_t, 4> dims;  ///< (N, C, H, W), padding included
  bool is_virtual = false;           ///< only ever within a kernel, never in memory
  /// Elements between neighbours in each dimension; NHWC's unless they are given.
  std::optional<std::array<std::int64_t, 4>> strides = {};
  bool is_by_value = false;  ///< a number, which an execution reads from host memory
};

enum class ConvolutionPass { kForward, kBackwardData, kBackwardWeights };

/// A cross-correlation with float sums. The pass says which of x, w and y is computed from the two
/// others; the gradient of a tensor stands in its place.
struct ConvolutionNode {
  ConvolutionPass pass;
  std::int64_t x;
  std::int64_t w;
  std::int64_t y;
  std::array<std::int64_t, 2> stride;
  std::array<std::int64_t, 2> padding;
  std::array<std::int64_t, 2> dilation;
};

/// y = mode(x), or of x and `b`, which is repeated along dimensions of size one. In float unless
/// `computed_in` says otherwise. A NaN stays one in a ReLU, too.
struct PointwiseNode {
  cudnnPointwiseMode_t mode;
  std::int64_t x;
  std::optional<std::int64_t> b;
  std::int64_t y;
  std::optional<std::int64_t> selector = {};  ///< true: x, false: b
  std::optional<std::int64_t> axis = {};      ///< whose indices y is made of
  cudnnDataType_t computed_in = CUDNN_DATA_FLOAT;
};

/// c = a b, of the last two dimensions, with float sums. A `b` with fewer heads (the second
/// dimension) than `a` serves several of them each.
struct MatmulNode {
  std::int64_t a;
  std::int64_t b;
  std::int64_t c;
};

/// y = x reduced along the dimensions in which y has size one, or fewer heads. In float.
struct ReductionNode {
  cudnnReduceTensorOp_t mode;
  std::int64_t x;
  std::int64_t y;
};

/// y is x with y's dimensions and strides, without a copy: transposed, for example.
struct ReshapeNode {
  std::int64_t x;
  std::int64_t y;
};

using GraphNode =
    std::variant<ConvolutionNode, PointwiseNode, MatmulNode, ReductionNode, ReshapeNode>;

/// Operations for which cuDNN is asked for one kernel.
class CudnnGraph {
 public:
  /// Requires: the nodes' tensors are among `tensors`. Throws: CudnnError when cuDNN refuses.
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
  std::vector<CudnnDescriptor> settings_;  // of operations, which refer to them
  std::vector<CudnnDescriptor> operations_;
  CudnnDescriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

}  // namespace spillway::cuda
