#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/cuda/layout/kernel_context.h"
#include "src/ops/backend.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// The ways to run a convolution within the machine's max_workspace, the baseline first: least
/// workspace. Each operation is in the file of its layer.
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const ConvolutionForward& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const ConvolutionBackwardData& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const ConvolutionBackwardWeights& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const TransposedConvolutionForward& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(const Machine& machine,
                                                       const TransposedConvolutionBackwardData& op);
[[nodiscard]] std::vector<AlgorithmInfo> algorithms_of(
    const Machine& machine, const TransposedConvolutionBackwardWeights& op);

/// Requires: `algorithm` is one of algorithms_of(machine, op).
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const ConvolutionForward& op,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const ConvolutionBackwardData& op,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const ConvolutionBackwardWeights& op,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const TransposedConvolutionForward& op,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const TransposedConvolutionBackwardData& op,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const TransposedConvolutionBackwardWeights& op,
                                                  std::string_view algorithm);

/// The kernels that have one algorithm, and the workspaces of those that need one.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LoadBatch& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const BatchNormForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const BatchNormInference& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const BatchNormBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddGradients& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PoolBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LrnForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LrnBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConcatForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConcatBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LinearForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const LinearBackwardData& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const LinearBackwardWeights& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutForward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const DropoutBackward& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const SoftmaxCrossEntropyTrain& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const SoftmaxCrossEntropyEvaluate& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AdamUpdate& op);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const AccumulateGradients& op);

[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const LoadBatch& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const BatchNormForward& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const BatchNormInference& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const BatchNormBackward& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const LinearForward& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const LinearBackwardData& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const LinearBackwardWeights& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const SoftmaxCrossEntropyTrain& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const SoftmaxCrossEntropyEvaluate& op);

/// The mask, and the index.
[[nodiscard]] um::Bytes saved_bytes(const Machine& machine, const BatchNormForward& op);
[[nodiscard]] um::Bytes saved_bytes(const Machine& machine, const PoolForward& op);

}  // namespace spillway::cuda
