#pragma once

#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "um/bytes.h"

namespace spillway::host {

/// The part of oneDNN that this backend uses, the same for versions 2.6 and 3: all that differs
/// between them is in onednn_primitives.cpp. Scratchpads are always the caller's.

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// "oneDNN 2.6.3"
[[nodiscard]] std::string onednn_version();

/// The instruction set that oneDNN uses here: "avx512_core_bf16".
[[nodiscard]] std::string instruction_set();
/// True when it holds all of `set`.
[[nodiscard]] bool has_instructions(dnnl::cpu_isa set);

[[nodiscard]] Dims dims(std::initializer_list<std::size_t> sizes);
[[nodiscard]] Desc float_desc(std::initializer_list<std::size_t> sizes,
                              dnnl::memory::format_tag tag);

/// The same sizes in whichever format a primitive likes best.
[[nodiscard]] Desc any_format(const Desc& desc, dnnl::memory::data_type type);
/// The same sizes and format, of elements of another type. Requires: a plain format, as ab or ba.
[[nodiscard]] Desc of_type(const Desc& desc, dnnl::memory::data_type type);
/// The same matrix, rows for columns.
[[nodiscard]] Desc transposed(const Desc& matrix);

/// What the three convolution primitives share. An empty `bias` is no bias.
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

/// Each is empty where oneDNN does not offer `descs.algorithm` for these shapes.
[[nodiscard]] dnnl::convolution_forward::primitive_desc convolution_forward(
    const dnnl::engine& engine, const ConvolutionDescs& descs, bool relu);
[[nodiscard]] dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const dnnl::engine& engine, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward);
[[nodiscard]] dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const dnnl::engine& engine, const ConvolutionDescs& descs,
    const dnnl::convolution_forward::primitive_desc& forward);

/// What the three inner product primitives share. An empty `bias` is no bias.
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

/// An element-wise function. Backward reads what forward read.
[[nodiscard]] dnnl::eltwise_forward::primitive_desc eltwise_forward(const dnnl::engine& engine,
                                                                    dnnl::algorithm function,
                                                                    const Desc& x);
[[nodiscard]] dnnl::eltwise_backward::primitive_desc eltwise_backward(
    const dnnl::engine& engine, dnnl::algorithm function, const Desc& x,
    const dnnl::eltwise_forward::primitive_desc& forward);

/// A matrix, row by row. Transposed, it is read as if rows were columns.
struct Matrix {
  const float* numbers;
  std::size_t stride;  ///< from row to row as it lies
  bool transposed = false;
};
/// The sizes of a product: a (rows, inner) times b (inner, columns).
struct ProductSizes {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
};
/// c = scale a b, or with `adds` c += scale a b; rows of c are `stride` apart. Within a parallel
/// region the calling thread works alone, elsewhere its team works with it. Returns false when it
/// has no memory for that.
[[nodiscard]] bool multiply(const ProductSizes& sizes, const Matrix& a, const Matrix& b, float* c,
                            std::size_t stride, float scale, bool adds) noexcept;
/// Throws: um::Error unless all products of a kernel `had_memory`.
void expect_products(bool had_memory);

/// A primitive for the product of a (rows, inner) and b (inner, columns), which the memory it is
/// given for c (rows, columns) gets; with `adds` it is added to what c has.
[[nodiscard]] dnnl::matmul::primitive_desc product(const dnnl::engine& engine, const Desc& a,
                                                   const Desc& b, const Desc& c, bool adds);

enum class NormMode {
  kTraining,  ///< computes the batch's statistics
  kInference  ///< reads given statistics
};

/// Batch norm with a scale and a shift.
[[nodiscard]] dnnl::batch_normalization_forward::primitive_desc batch_norm_forward(
    const dnnl::engine& engine, NormMode mode, const Desc& x, float epsilon, bool relu);
[[nodiscard]] dnnl::batch_normalization_backward::primitive_desc batch_norm_backward(
    const dnnl::engine& engine, const Desc& x, float epsilon, bool relu,
    const dnnl::batch_normalization_forward::primitive_desc& forward);

/// What the two pooling primitives share.
struct PoolDescs {
  dnnl::algorithm algorithm;
  Desc x;
  Desc y;
  Dims strides;
  Dims kernel;
  Dims padding;         ///< before the image
  Dims padding_behind;  ///< at least as much
};

[[nodiscard]] dnnl::pooling_forward::primitive_desc pool_forward(const dnnl::engine& engine,
                                                                 const PoolDescs& descs);
[[nodiscard]] dnnl::pooling_backward::primitive_desc pool_backward(
    const dnnl::engine& engine, const PoolDescs& descs,
    const dnnl::pooling_forward::primitive_desc& forward);

[[nodiscard]] dnnl::reorder::primitive_desc reorder(const dnnl::engine& engine, const Desc& from,
                                                    const Desc& to);

[[nodiscard]] um::Bytes scratchpad_bytes(const dnnl::primitive_desc_base& primitive);

/// A primitive and its arguments, whose addresses are given at each run.
class Call {
 public:
  /// Arguments of no size (no bias, no scratchpad) are left out.
  Call(const dnnl::engine& engine, dnnl::primitive primitive,
       std::initializer_list<std::pair<int, Desc>> arguments);

  /// Returns when the work is done. `addresses` by DNNL_ARG_ number; those of arguments that were
  /// left out are ignored.
  void run(std::initializer_list<std::pair<int, std::byte*>> addresses);

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace spillway::host
