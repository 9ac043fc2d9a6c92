#pragma once

#include <memory>
#include <optional>

#include "src/host/layout/host_kernel.h"
#include "src/host/layout/weighted_kernel.h"
#include "src/ops/backend.h"

namespace spillway::host {

/// The primitive of a layer with weights; nothing where oneDNN does not offer `algorithm`. Each
/// operation is in the file of its layer.
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(const Machine& machine,
                                                              const ConvolutionForward& operation,
                                                              dnnl::algorithm algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(
    const Machine& machine, const ConvolutionBackwardData& operation, dnnl::algorithm algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(
    const Machine& machine, const ConvolutionBackwardWeights& operation, dnnl::algorithm algorithm);
/// Of the convolution that makes x of y.
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(
    const Machine& machine, const TransposedConvolutionForward& operation,
    dnnl::algorithm algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(
    const Machine& machine, const TransposedConvolutionBackwardData& operation,
    dnnl::algorithm algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(
    const Machine& machine, const TransposedConvolutionBackwardWeights& operation,
    dnnl::algorithm algorithm);
[[nodiscard]] WeightedPrimitive make_primitive(const Machine& machine,
                                               const LinearForward& operation);
[[nodiscard]] WeightedPrimitive make_primitive(const Machine& machine,
                                               const LinearBackwardData& operation);
[[nodiscard]] WeightedPrimitive make_primitive(const Machine& machine,
                                               const LinearBackwardWeights& operation);

/// The kernels of a transposed convolution, of the primitive that was made for the operation, or of
/// loops where that is oneDNN's reference implementation; and the workspaces.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const TransposedConvolutionForward& operation,
                                                  const WeightedPrimitive& weighted);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(
    const Machine& machine, const TransposedConvolutionBackwardData& operation,
    const WeightedPrimitive& weighted);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(
    const Machine& machine, const TransposedConvolutionBackwardWeights& operation,
    const WeightedPrimitive& weighted);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine,
                                     const TransposedConvolutionForward& operation,
                                     const WeightedPrimitive& weighted);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine,
                                     const TransposedConvolutionBackwardData& operation,
                                     const WeightedPrimitive& weighted);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine,
                                     const TransposedConvolutionBackwardWeights& operation,
                                     const WeightedPrimitive& weighted);

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

[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const BatchNormForward& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const BatchNormInference& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const BatchNormBackward& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const PoolForward& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const PoolBackward& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const SoftmaxCrossEntropyTrain& op);
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const SoftmaxCrossEntropyEvaluate& op);

/// The mask, and the index.
[[nodiscard]] um::Bytes saved_bytes(const Machine& machine, const BatchNormForward& op);
[[nodiscard]] um::Bytes saved_bytes(const Machine& machine, const PoolForward& op);

}  // namespace spillway::host
