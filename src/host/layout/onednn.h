#pragma once

#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "um/bytes.h"

namespace spillway::host {

/// The part of oneDNN that this backend uses, the same for versions 2.6 and 3; onednn.cpp hides
/// their differences. The caller always provides the scratchpads.

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// Returns "oneDNN 2.6.3".
[[nodiscard]] std::string onednn_version();

/// Returns the instruction set that oneDNN uses on this machine: "avx512_core_bf16".
[[nodiscard]] std::string instruction_set();
/// Returns true if oneDNN's instruction set includes all of `set`.
[[nodiscard]] bool has_instructions(dnnl::cpu_isa set);

[[nodiscard]] Dims dims(std::initializer_list<std::size_t> sizes);
[[nodiscard]] Desc float_desc(std::initializer_list<std::size_t> sizes,
                              dnnl::memory::format_tag tag);

/// Returns the same sizes with any format, so that the primitive may choose it.
[[nodiscard]] Desc any_format(const Desc& desc, dnnl::memory::data_type type);
/// Returns the same sizes and format with another element type. Requires: a plain format, such as
/// ab or ba.
[[nodiscard]] Desc of_type(const Desc& desc, dnnl::memory::data_type type);
/// Returns the transposed matrix.
[[nodiscard]] Desc transposed(const Desc& matrix);

/// The parameters that all three convolution primitives share. An empty `bias` means no bias.
struct ConvolutionDescs {
  dnnl::algorithm algorithm;
  Desc x;
  Desc weights;
  Desc bias;
  Desc y;
  Dims strides;
  Dims gaps;  ///< between neighbours under the kernel: dilation - 1
  Dims padding;
};

/// Each returns an empty result if oneDNN does not offer `descs.algorithm` for these shapes.
[[nodiscard]] dnnl::convolution_forward::primitive_desc convolution_forward(
    const dnnl::engine& engine, const ConvolutionDescs& descs, bool relu);
[[nodiscard]] dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const dnnl::engine& engine, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward);
[[nodiscard]] dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const dnnl::engine& engine, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward);

/// The parameters that all three inner product primitives share. An empty `bias` means no bias.
struct LinearDescs {
  Desc x;
  Desc weights;
  Desc bias;
  Desc y;
};

[[nodiscard]] dnnl::inner_product_forward::primitive_desc linear_forward(const dnnl::engine& engine,
                                                                         const LinearDescs& descs,
                                                                         bool relu);
[[nodiscard]] dnnl::inner_product_backward_data::primitive_desc linear_backward_data(
    const dnnl::engine& engine, const LinearDescs& descs,
    const dnnl::inner_product_forward::primitive_desc& forward);
[[nodiscard]] dnnl::inner_product_backward_weights::primitive_desc linear_backward_weights(
    const dnnl::engine& engine, const LinearDescs& descs,
    const dnnl::inner_product_forward::primitive_desc& forward);

/// Primitives of an element-wise function. Backward reads the input of forward.
[[nodiscard]] dnnl::eltwise_forward::primitive_desc eltwise_forward(const dnnl::engine& engine,
                                                                    dnnl::algorithm function,
                                                                    const Desc& x);
[[nodiscard]] dnnl::eltwise_backward::primitive_desc eltwise_backward(
    const dnnl::engine& engine, dnnl::algorithm function, const Desc& x,
    const dnnl::eltwise_forward::primitive_desc& forward);

/// A matrix, stored row by row; if `transposed`, it is read as its transpose.
struct Matrix {
  const float* numbers;
  std::size_t stride;  ///< distance between stored rows
  bool transposed = false;
};
/// Sizes of a product: a (rows, inner) times b (inner, columns).
struct ProductSizes {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
};
/// Computes c = scale a b, or with `adds` c += scale a b; rows of c are `stride` apart. Uses one
/// thread inside a parallel region, otherwise the calling thread's team. Returns false if there is
/// not enough memory.
[[nodiscard]] bool multiply(const ProductSizes& sizes, const Matrix& a, const Matrix& b, float* c,
                            std::size_t stride, float scale, bool adds) noexcept;
/// Throws: um::Error unless all products of a kernel `had_memory`.
void expect_products(bool had_memory);

/// Returns a primitive for c = a b, with a (rows, inner), b (inner, columns) and c (rows, columns);
/// with `adds`, for c += a b.
[[nodiscard]] dnnl::matmul::primitive_desc product(const dnnl::engine& engine, const Desc& a,
                                                   const Desc& b, const Desc& c, bool adds);

enum class NormMode {
  kTraining,  ///< computes the batch's statistics
  kInference  ///< reads given statistics
};

/// Primitives of batch norm with scale and shift.
[[nodiscard]] dnnl::batch_normalization_forward::primitive_desc batch_norm_forward(
    const dnnl::engine& engine, NormMode mode, const Desc& x, float epsilon, bool relu);
[[nodiscard]] dnnl::batch_normalization_backward::primitive_desc batch_norm_backward(
    const dnnl::engine& engine, const Desc& x, float epsilon, bool relu,
    const dnnl::batch_normalization_forward::primitive_desc& forward);

/// The parameters that both pooling primitives share.
struct PoolDescs {
  dnnl::algorithm algorithm;
  Desc x;
  Desc y;
  Dims strides;
  Dims kernel;
  Dims padding;         ///< before the image
  Dims padding_behind;  ///< at least `padding`
};

[[nodiscard]] dnnl::pooling_forward::primitive_desc pool_forward(const dnnl::engine& engine,
                                                                 const PoolDescs& descs);
[[nodiscard]] dnnl::pooling_backward::primitive_desc pool_backward(
    const dnnl::engine& engine, const PoolDescs& descs,
    const dnnl::pooling_forward::primitive_desc& forward);

[[nodiscard]] dnnl::reorder::primitive_desc reorder(const dnnl::engine& engine, const Desc& from,
                                                    const Desc& to);

[[nodiscard]] um::Bytes scratchpad_bytes(const dnnl::primitive_desc_base& primitive);

/// A primitive and its arguments; each run gives their addresses.
class Call {
 public:
  /// Omits arguments of size zero (no bias, no scratchpad).
  Call(const dnnl::engine& engine, dnnl::primitive primitive,
       std::initializer_list<std::pair<int, Desc>> arguments);

  /// Returns when the work is done. `addresses` are keyed by DNNL_ARG_ number; addresses of omitted
  /// arguments are ignored.
  void run(std::initializer_list<std::pair<int, std::byte*>> addresses);

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace spillway::host
