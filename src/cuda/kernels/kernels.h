#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "src/cuda/layout/layout.h"
#include "src/ops/backend.h"
#include "um/bytes.h"
#include "um/cuda/driver/cuda_facts.h"

namespace spillway::cuda {

/// The source of each layer defines its operations.
///
/// Requires: `algorithm` is one of algorithms_of(machine, op) (src/cuda/cudnn/convolution.h).
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConvolutionForward&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConvolutionBackwardData&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const ConvolutionBackwardWeights&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const TransposedConvolutionForward&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const TransposedConvolutionBackwardData&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const TransposedConvolutionBackwardWeights&,
                                                  std::string_view algorithm);

/// Requires: `algorithm` is one of algorithms_of(machine, op) (src/cuda/cudnn/attention_engines.h).
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AttentionForward&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const AttentionBackward&,
                                                  std::string_view algorithm);

/// Requires: `algorithm` is one of algorithms_of(machine, op) (src/cuda/cudnn/cublas_matmul.h).
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const LinearForward&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const LinearBackwardData&,
                                                  std::string_view algorithm);
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&, const LinearBackwardWeights&,
                                                  std::string_view algorithm);

/// Return kernels of operations with one algorithm, our own attention kernels, and the workspaces
/// of some.
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
/// Kernel for Backend::prepare_updates().
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine&,
                                                  const std::vector<UpdateParameters>&);

[[nodiscard]] um::Bytes workspace_of(const Machine&, const BatchNormForward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const BatchNormInference&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const BatchNormBackward&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const SoftmaxCrossEntropyTrain&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const SoftmaxCrossEntropyEvaluate&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const AddSquares&);
[[nodiscard]] um::Bytes workspace_of(const Machine&, const EmbeddingBackward&);
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

/// Returns the workspace of channel_sums().
[[nodiscard]] um::Bytes channel_sums_workspace(const ChannelMatrix& matrix);

/// Enqueues: sums[c] = float sum of column c of `x`, always added in the same order.
void channel_sums(const Machine& machine, const ChannelMatrix& matrix, const std::byte* x,
                  std::byte* workspace, float* sums);

/// Enqueues y = y + bias, with one float per padded channel, unless `bias` is null; then, with
/// `relu`, y = max(0, y). For operations without an engine that fuses both.
void add_bias_relu(const Machine& machine, const ChannelMatrix& matrix, std::byte* y,
                   const float* bias, bool relu);

/// Enqueues the conversion of `count` bfloat16 numbers to floats. Requires: both pointers are
/// aligned to 16 bytes; `count` is a multiple of 8.
void widen(const Machine& machine, std::size_t count, const std::byte* from, float* to);

/// Throws: um::Error, one sentence that says what to do, unless our kernels were compiled for the
/// current device. `facts` describe that device.
void expect_kernels_for_this_gpu(const um::CudaFacts& facts);

/// Bytes of shared memory that a block may use on every device without an explicit request.
inline constexpr std::size_t kSharedBytes = 48U << 10U;

// Sums of ranks over numbers in a device's memory: NumberKernels of src/ranks/communicator.h. Each
// function enqueues, and requires only the alignment of a float.

/// to[i] += numbers[i]
void add_numbers(cudaStream_t stream, float* to, const float* numbers, std::size_t count);
/// numbers[i] /= by
void divide_numbers(cudaStream_t stream, float* numbers, float by, std::size_t count);
void fill_numbers(cudaStream_t stream, float* numbers, float value, std::size_t count);

}  // namespace spillway::cuda
