#include "src/cuda/cudnn/cudnn_graph.h"

namespace spillway::cuda {
namespace {

using Dims = std::array<std::int64_t, 4>;

Dims nhwc_strides(const Dims& dims) {
  const auto [batch, channels, height, width] = dims;
  return {channels * height * width, 1, width * channels, channels};
}

CudnnDescriptor convolution_settings(const ConvolutionNode& node) {
  CudnnDescriptor settings{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR};
  settings.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  settings.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  settings.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  settings.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, node.padding);
  settings.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, node.padding);
  settings.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, node.dilation);
  settings.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, node.stride);
  settings.finalize();
  return settings;
}

// cuDNN's names for the parts of a convolution in one pass.
struct PassNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, settings, alpha, beta;
};

PassNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionPass::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionPass::kBackwardWeights:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

}  // namespace

CudnnTarget CudnnTarget::described(std::string_view properties) {
#if CUDNN_VERSION >= 90800
  CudnnTarget target{nullptr};
  target.properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  target.properties_->set_all<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties);
  target.properties_->finalize();
  return target;
#else
  (void)properties;
  throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                   "planning for a device that is not there takes cuDNN 9.8 or newer"};
#endif
}

CudnnGraph::CudnnGraph(const CudnnTarget& target, std::span<const GraphTensor> tensors,
                       std::span<const GraphNode> nodes) {
  for (const GraphTensor& tensor : tensors) add(tensor);
  for (const GraphNode& node : nodes) {
    std::visit([this](const auto& operation) { add(operation); }, node);
  }
  // Older releases of cuDNN 9 require the handle here.
  if (target.handle() != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle());
  graph_.set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  graph_.finalize();
}

void CudnnGraph::add(const GraphTensor& tensor) {
  constexpr std::int64_t kAlignment = 16;
  CudnnDescriptor descriptor{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
  descriptor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.type);
  descriptor.set_all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims);
  descriptor.set_all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES,
                                   tensor.strides.value_or(nhwc_strides(tensor.dims)));
  descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  descriptor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual);
  if (tensor.is_by_value) descriptor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  descriptor.finalize();
  tensors_.emplace(tensor.id, std::move(descriptor));
}

void CudnnGraph::add(const ConvolutionNode& node) {
  const CudnnDescriptor& settings = settings_.emplace_back(convolution_settings(node));
  const PassNames names = names_of(node.pass);
  CudnnDescriptor operation{names.type};
  operation.set(names.x, tensors_.at(node.x));
  operation.set(names.w, tensors_.at(node.w));
  operation.set(names.y, tensors_.at(node.y));
  operation.set(names.settings, settings);
  operation.set(names.alpha, 1.F);
  operation.set(names.beta, 0.F);
  operation.finalize();
  operations_.push_back(std::move(operation));
}

void CudnnGraph::add(const PointwiseNode& node) {
  CudnnDescriptor& settings = settings_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  settings.set(CUDNN_ATTR_POINTWISE_MODE, node.mode);
  settings.set(CUDNN_ATTR_POINTWISE_MATH_PREC, node.computed_in);
  settings.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  if (node.axis) settings.set(CUDNN_ATTR_POINTWISE_AXIS, *node.axis);
  settings.finalize();
  CudnnDescriptor operation{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR};
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, settings);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_.at(node.x));
  if (node.b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_.at(*node.b));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_.at(node.y));
  if (node.selector) {
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_.at(*node.selector));
  }
  operation.finalize();
  operations_.push_back(std::move(operation));
}

void CudnnGraph::add(const MatmulNode& node) {
  CudnnDescriptor& settings = settings_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  settings.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  settings.finalize();
  CudnnDescriptor operation{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR};
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_.at(node.a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_.at(node.b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_.at(node.c));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, settings);
  operation.finalize();
  operations_.push_back(std::move(operation));
}

void CudnnGraph::add(const ReductionNode& node) {
  CudnnDescriptor& settings = settings_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  settings.set(CUDNN_ATTR_REDUCTION_OPERATOR, node.mode);
  settings.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  settings.finalize();
  CudnnDescriptor operation{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR};
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_.at(node.x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_.at(node.y));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, settings);
  operation.finalize();
  operations_.push_back(std::move(operation));
}

void CudnnGraph::add(const ReshapeNode& node) {
  CudnnDescriptor operation{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR};
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensors_.at(node.x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensors_.at(node.y));
  operation.finalize();
  operations_.push_back(std::move(operation));
}

}  // namespace spillway::cuda
