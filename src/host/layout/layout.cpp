#include "src/host/layout/layout.h"

#include <cstring>

#include "um/error.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace spillway::host {

Layout::Layout(std::size_t block, Precision precision) : block_{block}, precision_{precision} {
  um::expects(block == 16 || block == 8 || block == 1, "oneDNN has blocks of 16, 8 and 1 channels");
  um::expects(precision != Precision::kTf32, "elements are floats or bfloat16");
}

Layout Layout::of_this_machine(Precision precision) {
  if (has_instructions(dnnl::cpu_isa::avx512_core)) return Layout{16, precision};
  if (has_instructions(dnnl::cpu_isa::sse41)) return Layout{8, precision};
  return Layout{1, precision};
}

dnnl::memory::data_type Layout::element_type() const {
  return is_bf16() ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

Desc Layout::dense_desc(std::initializer_list<std::size_t> sizes) const {
  um::expects(sizes.size() == 1 || sizes.size() == 2, "a row or a matrix");
  return {dims(sizes), element_type(),
          sizes.size() == 1 ? dnnl::memory::format_tag::a : dnnl::memory::format_tag::ab};
}

dnnl::memory::format_tag Layout::tag(std::size_t channels) const {
  using enum dnnl::memory::format_tag;
  if (is_dense(channels)) return nchw;
  return block_ == 16 ? nChw16c : nChw8c;
}

Desc Layout::desc(const TensorShape& shape) const {
  const auto& [channels, height, width, form] = shape.image;
  return {dims({shape.batch, padded(channels), height, width}), element_type(), tag(channels)};
}

Desc Layout::unpadded_desc(const TensorShape& shape) const {
  const auto& [channels, height, width, form] = shape.image;
  return {dims({shape.batch, channels, height, width}), element_type(), tag(channels)};
}

void clear_memory(um::Range block) {
#if defined(__SSE2__)
  auto* const begin = reinterpret_cast<__m128i*>(block.data());
  for (std::size_t i = 0; i < block.size() / sizeof(__m128i); ++i) {
    _mm_stream_si128(begin + i, _mm_setzero_si128());
  }
  _mm_sfence();
#else
  std::memset(block.data(), 0, block.size());
#endif
}

}  // namespace spillway::host
