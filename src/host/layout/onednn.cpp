#include "src/host/layout/onednn.h"

#include <omp.h>

#include "um/error.h"

namespace spillway::host {
namespace {

// oneDNN kernels leave the upper halves of the calling thread's vector registers dirty. Code that
// uses only the lower halves, as our loops do, then waits for the upper ones at each instruction:
// on one machine, such loops took four times as long. Not inlined, so that no compiler keeps values
// in the upper halves across the call.
[[gnu::noinline]] void release_upper_registers() {
#ifdef __x86_64__
  static const bool has_them = has_instructions(dnnl::cpu_isa::avx);
  if (has_them) __asm__ volatile("vzeroupper" ::: "memory");
#endif
}

using dnnl::engine;
using dnnl::primitive_attr;
using dnnl::prop_kind;

primitive_attr attributes(bool relu = false) {
  primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (relu) {
    dnnl::post_ops ops;
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.F, 0.F);
#else
    ops.append_eltwise(1.F, dnnl::algorithm::eltwise_relu, 0.F, 0.F);
#endif
    attr.set_post_ops(ops);
  }
  return attr;
}

// Returns the attributes of a primitive that adds its result to the old value if `adds`.
primitive_attr sum_attributes(bool adds) {
  primitive_attr attr = attributes();
  if (!adds) return attr;
  dnnl::post_ops ops;
  ops.append_sum(1.F);
  attr.set_post_ops(ops);
  return attr;
}

dnnl::normalization_flags norm_flags(NormMode mode, bool relu) {
  using Flags = dnnl::normalization_flags;
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (mode == NormMode::kInference) flags = flags | Flags::use_global_stats;
  if (relu) flags = flags | Flags::fuse_norm_relu;
  return flags;
}

// oneDNN 2 describes an operation first and then asks for an implementation; oneDNN 3 does both in
// one constructor.
#if DNNL_VERSION_MAJOR < 3
template <class Primitive, class... Hint>
typename Primitive::primitive_desc implement(const engine& engine,
                                             const typename Primitive::desc& desc,
                                             const primitive_attr& attr, const Hint&... hint) {
  return typename Primitive::primitive_desc(desc, attr, engine, hint..., /*allow_empty=*/true);
}
#endif

}  // namespace

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

// oneDNN's instruction sets are bit sets; a newer set contains the older ones.
bool has_instructions(dnnl::cpu_isa set) {
  const auto bits = static_cast<unsigned>(set);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

std::string instruction_set() {
  using Isa = dnnl::cpu_isa;
  using Name = std::pair<Isa, const char*>;
  for (const auto& [set, name] :
       {Name{Isa::avx512_core_amx, "avx512_core_amx"},
        Name{Isa::avx512_core_bf16, "avx512_core_bf16"},
        Name{Isa::avx512_core_vnni, "avx512_core_vnni"}, Name{Isa::avx512_core, "avx512_core"},
        Name{Isa::avx2_vnni, "avx2_vnni"}, Name{Isa::avx2, "avx2"}, Name{Isa::avx, "avx"},
        Name{Isa::sse41, "sse41"}}) {
    if (has_instructions(set)) return name;
  }
  return "plain instructions";
}

Dims dims(std::initializer_list<std::size_t> sizes) { return {sizes.begin(), sizes.end()}; }

Desc float_desc(std::initializer_list<std::size_t> sizes, dnnl::memory::format_tag tag) {
  return {dims(sizes), dnnl::memory::data_type::f32, tag};
}

bool multiply(const ProductSizes& sizes, const Matrix& a, const Matrix& b, float* c,
              std::size_t stride, float scale, bool adds) noexcept {
  const auto signed_of = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  const auto letter = [](const Matrix& m) { return m.transposed ? 'T' : 'N'; };
  const dnnl::status status =
      dnnl::sgemm(letter(a), letter(b), signed_of(sizes.rows), signed_of(sizes.columns),
                  signed_of(sizes.inner), scale, a.numbers, signed_of(a.stride), b.numbers,
                  signed_of(b.stride), adds ? 1.F : 0.F, c, signed_of(stride));
  if (omp_in_parallel() != 0) {
    release_upper_registers();
  } else {
#pragma omp parallel
    release_upper_registers();
  }
  return status == dnnl::status::success;
}

void expect_products(bool had_memory) {
  if (had_memory) return;
  throw um::Error{"oneDNN could not multiply two matrices: it had no memory for that"};
}

Desc transposed(const Desc& matrix) { return matrix.permute_axes({1, 0}); }

um::Bytes scratchpad_bytes(const dnnl::primitive_desc_base& primitive) {
  return um::Bytes{primitive.scratchpad_desc().get_size()};
}

Call::Call(const dnnl::engine& engine, dnnl::primitive primitive,
           std::initializer_list<std::pair<int, Desc>> arguments)
    : primitive_{std::move(primitive)}, stream_{engine} {
  for (const auto& [number, desc] : arguments) {
    if (desc.get_size() > 0) {
      arguments_.emplace(number, dnnl::memory(desc, engine, DNNL_MEMORY_NONE));
    }
  }
}

void Call::run(std::initializer_list<std::pair<int, std::byte*>> addresses) {
  for (const auto& [number, address] : addresses) {
    if (const auto argument = arguments_.find(number); argument != arguments_.end()) {
      argument->second.set_data_handle(address);
    }
  }
  primitive_.execute(stream_, arguments_);
  stream_.wait();
#pragma omp parallel
  release_upper_registers();
}

#if DNNL_VERSION_MAJOR >= 3

Desc any_format(const Desc& desc, dnnl::memory::data_type type) {
  return {desc.get_dims(), type, dnnl::memory::format_tag::any};
}

Desc of_type(const Desc& desc, dnnl::memory::data_type type) {
  return {desc.get_dims(), type, desc.get_strides()};
}

dnnl::matmul::primitive_desc product(const engine& engine, const Desc& a, const Desc& b,
                                     const Desc& c, bool adds) {
  return {engine, a, b, c, sum_attributes(adds)};
}

dnnl::convolution_forward::primitive_desc convolution_forward(const engine& engine,
                                                              const ConvolutionDescs& d,
                                                              bool relu) {
  return {engine,      prop_kind::forward_training,
          d.algorithm, d.x,
          d.weights,   d.bias,
          d.y,         d.strides,
          d.gaps,      d.padding,
          d.padding,   attributes(relu),
          true};
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const engine& engine, const ConvolutionDescs& d,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine, d.algorithm, d.x,       d.weights, d.y,          d.strides,
          d.gaps, d.padding,   d.padding, forward,   attributes(), true};
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const engine& engine, const ConvolutionDescs& d,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine, d.algorithm, d.x,       d.weights, d.bias,       d.y, d.strides,
          d.gaps, d.padding,   d.padding, forward,   attributes(), true};
}

dnnl::inner_product_forward::primitive_desc linear_forward(const engine& engine,
                                                           const LinearDescs& d, bool relu) {
  return {engine, prop_kind::forward_training, d.x, d.weights, d.bias, d.y, attributes(relu)};
}

dnnl::inner_product_backward_data::primitive_desc linear_backward_data(
    const engine& engine, const LinearDescs& d,
    const dnnl::inner_product_forward::primitive_desc& forward) {
  return {engine, d.x, d.weights, d.y, forward, attributes()};
}

dnnl::inner_product_backward_weights::primitive_desc linear_backward_weights(
    const engine& engine, const LinearDescs& d,
    const dnnl::inner_product_forward::primitive_desc& forward) {
  return {engine, d.x, d.weights, d.bias, d.y, forward, attributes()};
}

dnnl::batch_normalization_forward::primitive_desc batch_norm_forward(const engine& engine,
                                                                     NormMode mode, const Desc& x,
                                                                     float epsilon, bool relu) {
  const prop_kind kind =
      mode == NormMode::kTraining ? prop_kind::forward_training : prop_kind::forward_inference;
  return {engine, kind, x, x, epsilon, norm_flags(mode, relu), attributes()};
}

dnnl::batch_normalization_backward::primitive_desc batch_norm_backward(
    const engine& engine, const Desc& x, float epsilon, bool relu,
    const dnnl::batch_normalization_forward::primitive_desc& forward) {
  return {engine,  prop_kind::backward, x, x, x, epsilon, norm_flags(NormMode::kTraining, relu),
          forward, attributes()};
}

dnnl::pooling_forward::primitive_desc pool_forward(const engine& engine, const PoolDescs& d) {
  return {engine,      prop_kind::forward_training,
          d.algorithm, d.x,
          d.y,         d.strides,
          d.kernel,    Dims{0, 0},
          d.padding,   d.padding_behind,
          attributes()};
}

dnnl::pooling_backward::primitive_desc pool_backward(
    const engine& engine, const PoolDescs& d,
    const dnnl::pooling_forward::primitive_desc& forward) {
  return {engine,    d.algorithm,      d.x,     d.y,         d.strides, d.kernel, Dims{0, 0},
          d.padding, d.padding_behind, forward, attributes()};
}

dnnl::eltwise_forward::primitive_desc eltwise_forward(const engine& engine,
                                                      dnnl::algorithm function, const Desc& x) {
  return {engine, prop_kind::forward_training, function, x, x, 0.F, 0.F, attributes()};
}

dnnl::eltwise_backward::primitive_desc eltwise_backward(
    const engine& engine, dnnl::algorithm function, const Desc& x,
    const dnnl::eltwise_forward::primitive_desc& forward) {
  return {engine, function, x, x, x, 0.F, 0.F, forward, attributes()};
}

#else

Desc any_format(const Desc& desc, dnnl::memory::data_type type) {
  return {desc.dims(), type, dnnl::memory::format_tag::any};
}

Desc of_type(const Desc& desc, dnnl::memory::data_type type) {
  Desc typed = desc;
  typed.data.data_type = dnnl::memory::convert_to_c(type);
  return typed;
}

dnnl::matmul::primitive_desc product(const engine& engine, const Desc& a, const Desc& b,
                                     const Desc& c, bool adds) {
  return {{a, b, c}, sum_attributes(adds), engine};
}

dnnl::convolution_forward::primitive_desc convolution_forward(const engine& engine,
                                                              const ConvolutionDescs& d,
                                                              bool relu) {
  return implement<dnnl::convolution_forward>(
      engine,
      {prop_kind::forward_training, d.algorithm, d.x, d.weights, d.bias, d.y, d.strides, d.gaps,
       d.padding, d.padding},
      attributes(relu));
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const engine& engine, const ConvolutionDescs& d,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return implement<dnnl::convolution_backward_data>(
      engine, {d.algorithm, d.x, d.weights, d.y, d.strides, d.gaps, d.padding, d.padding},
      attributes(), forward);
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const engine& engine, const ConvolutionDescs& d,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return implement<dnnl::convolution_backward_weights>(
      engine, {d.algorithm, d.x, d.weights, d.bias, d.y, d.strides, d.gaps, d.padding, d.padding},
      attributes(), forward);
}

dnnl::inner_product_forward::primitive_desc linear_forward(const engine& engine,
                                                           const LinearDescs& d, bool relu) {
  return implement<dnnl::inner_product_forward>(
      engine, {prop_kind::forward_training, d.x, d.weights, d.bias, d.y}, attributes(relu));
}

dnnl::inner_product_backward_data::primitive_desc linear_backward_data(
    const engine& engine, const LinearDescs& d,
    const dnnl::inner_product_forward::primitive_desc& forward) {
  return implement<dnnl::inner_product_backward_data>(engine, {d.x, d.weights, d.y}, attributes(),
                                                      forward);
}

dnnl::inner_product_backward_weights::primitive_desc linear_backward_weights(
    const engine& engine, const LinearDescs& d,
    const dnnl::inner_product_forward::primitive_desc& forward) {
  return implement<dnnl::inner_product_backward_weights>(engine, {d.x, d.weights, d.bias, d.y},
                                                         attributes(), forward);
}

dnnl::batch_normalization_forward::primitive_desc batch_norm_forward(const engine& engine,
                                                                     NormMode mode, const Desc& x,
                                                                     float epsilon, bool relu) {
  const prop_kind kind =
      mode == NormMode::kTraining ? prop_kind::forward_training : prop_kind::forward_inference;
  return implement<dnnl::batch_normalization_forward>(
      engine, {kind, x, epsilon, norm_flags(mode, relu)}, attributes());
}

dnnl::batch_normalization_backward::primitive_desc batch_norm_backward(
    const engine& engine, const Desc& x, float epsilon, bool relu,
    const dnnl::batch_normalization_forward::primitive_desc& forward) {
  return implement<dnnl::batch_normalization_backward>(
      engine, {prop_kind::backward, x, x, epsilon, norm_flags(NormMode::kTraining, relu)},
      attributes(), forward);
}

dnnl::pooling_forward::primitive_desc pool_forward(const engine& engine, const PoolDescs& d) {
  return implement<dnnl::pooling_forward>(engine,
                                          {prop_kind::forward_training, d.algorithm, d.x, d.y,
                                           d.strides, d.kernel, d.padding, d.padding_behind},
                                          attributes());
}

dnnl::pooling_backward::primitive_desc pool_backward(
    const engine& engine, const PoolDescs& d,
    const dnnl::pooling_forward::primitive_desc& forward) {
  return implement<dnnl::pooling_backward>(
      engine, {d.algorithm, d.x, d.y, d.strides, d.kernel, d.padding, d.padding_behind},
      attributes(), forward);
}

dnnl::eltwise_forward::primitive_desc eltwise_forward(const engine& engine,
                                                      dnnl::algorithm function, const Desc& x) {
  return implement<dnnl::eltwise_forward>(
      engine, {prop_kind::forward_training, function, x, 0.F, 0.F}, attributes());
}

dnnl::eltwise_backward::primitive_desc eltwise_backward(
    const engine& engine, dnnl::algorithm function, const Desc& x,
    const dnnl::eltwise_forward::primitive_desc& forward) {
  return implement<dnnl::eltwise_backward>(engine, {function, x, x, 0.F, 0.F}, attributes(),
                                           forward);
}

#endif

dnnl::reorder::primitive_desc reorder(const engine& engine, const Desc& from, const Desc& to) {
  return {engine, from, engine, to, attributes()};
}

}  // namespace spillway::host
