#pragma once

#include <memory>
#include <optional>

#include "src/host/layout/host_kernel.h"
#include "src/ops/backend.h"

namespace spillway::host {

/// Return the primitive of a layer with weights, or nullopt if oneDNN does not offer `algorithm`.
/// The source of each layer defines its operations.
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(const Machine&,
                                                              const ConvolutionForward&,
                                                              dnnl::algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(const Machine&,
                                                              const ConvolutionBackwardData&,
                                                              dnnl::algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(const Machine&,
                                                              const ConvolutionBackwardWeights&,
                                                              dnnl::algorithm);
/// Use the convolution from y to x.
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(const Machine&,
                                                              const TransposedConvolutionForward&,
                                                              dnnl::algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(
    const Machine&, const TransposedConvolutionBackwardData&, dnnl::algorithm);
[[nodiscard]] std::optional<WeightedPrimitive> make_primitive(
    const Machine&, const TransposedConvolutionBackwardWeights&, dnnl::algorithm);
[[nodiscard]] WeightedPrimitive make_primitive(const Machine&, const LinearForward&);
[[nodiscard]] WeightedPrimitive make_primitive(const Machine&, const LinearBackwardData&);
/// For a part; reads only the part's inputs, densely packed.
[[nodiscard]] WeightedPrimitive make_primitive(const Machine&, const LinearBackwardWeights&);

/// Return the kernel of a linear layer's weight gradient, and its workspace, which has room for a
/// part's inputs. Requires: the primitive was made for the operation.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const LinearBackwardWeights&,
                                                  const WeightedPrimitive&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const LinearBackwardWeights&,
                                     const WeightedPrimitive&);

/// Return the kernels of convolutions and their workspaces. Matrix products replace oneDNN's
/// reference implementation (window_products.h). Requires: the primitive was made for the
/// operation.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConvolutionForward&,
                                                  const WeightedPrimitive&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConvolutionBackwardData&,
                                                  const WeightedPrimitive&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConvolutionBackwardWeights&,
                                                  const WeightedPrimitive&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const TransposedConvolutionForward&,
                                                  const WeightedPrimitive&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const TransposedConvolutionBackwardData&,
                                                  const WeightedPrimitive&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const TransposedConvolutionBackwardWeights&,
                                                  const WeightedPrimitive&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const ConvolutionForward&,
                                     const WeightedPrimitive&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const ConvolutionBackwardData&,
                                     const WeightedPrimitive&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const ConvolutionBackwardWeights&,
                                     const WeightedPrimitive&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const TransposedConvolutionForward&,
                                     const WeightedPrimitive&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const TransposedConvolutionBackwardData&,
                                     const WeightedPrimitive&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const TransposedConvolutionBackwardWeights&,
                                     const WeightedPrimitive&);

/// Return kernels of operations with one algorithm, and the workspaces of some.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const LoadBatch&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const BatchNormForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const BatchNormInference&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const BatchNormBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ReluForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ReluBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const GeluForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const GeluBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AddForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AddGradients&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const PoolForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const PoolBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const LrnForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const LrnBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConcatForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConcatBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const CropForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const CropBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const DropoutForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const DropoutBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const SoftmaxCrossEntropyTrain&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const SoftmaxCrossEntropyEvaluate&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const UpdateParameters&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AverageParameters&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const TakeParameters&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AccumulateGradients&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AddSquares&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ClipGradient&);

/// Sequence operations, defined in sequences/.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const EmbeddingForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const EmbeddingBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const PositionsForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const PositionsBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const RowNormForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const RowNormBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const SwigluForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const SwigluBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const RotaryForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const RotaryBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AttentionForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AttentionBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ImageTokensForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ImageTokensBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const FirstTokenForward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const FirstTokenBackward&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const VocabularyLossTrain&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const VocabularyLossEvaluate&);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const VocabularyLogits&);

[[nodiscard]] um::Bytes workspace_of(const Machine&, const BatchNormForward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const BatchNormInference&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const BatchNormBackward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const PoolForward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const PoolBackward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const SoftmaxCrossEntropyTrain&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const SoftmaxCrossEntropyEvaluate&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const AddSquares&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const RowNormBackward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const AttentionForward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const AttentionBackward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const VocabularyLossTrain&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const VocabularyLossEvaluate&);

/// Return the bytes of the mask, the index, or the saved statistics of rows.
[[nodiscard]] um::Bytes saved_bytes(const Machine&, const BatchNormForward&);
[[nodiscard]] um::Bytes saved_bytes(const Machine&, const PoolForward&);
[[nodiscard]] um::Bytes saved_bytes(const Machine&, const AddForward&);
[[nodiscard]] um::Bytes saved_bytes(const Machine&, const RowNormForward&);
[[nodiscard]] um::Bytes saved_bytes(const Machine&, const AttentionForward&);

}  // namespace spillway::host
