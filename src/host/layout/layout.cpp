#include "src/host/layout/layout.h"

#include "um/error.h"

namespace spillway::host {

Layout::Layout(std::size_t block) : block_{block} {
  um::expects(block == 16 || block == 8 || block == 1, "oneDNN has blocks of 16, 8 and 1 channels");
}

Layout Layout::of_this_machine() {
  if (has_instructions(dnnl::cpu_isa::avx512_core)) return Layout{16};
  if (has_instructions(dnnl::cpu_isa::sse41)) return Layout{8};
  return Layout{1};
}

dnnl::memory::format_tag Layout::tag(std::size_t channels) const {
  using Tag = dnnl::memory::format_tag;
  if (is_dense(channels)) return Tag::nchw;
  return block_ == 16 ? Tag::nChw16c : Tag::nChw8c;
}

Desc Layout::desc(const TensorShape& shape) const {
  const auto& [channels, height, width, form] = shape.image;
  return float_desc({shape.batch, padded(channels), height, width}, tag(channels));
}

Desc Layout::unpadded_desc(const TensorShape& shape) const {
  const auto& [channels, height, width, form] = shape.image;
  return float_desc({shape.batch, channels, height, width}, tag(channels));
}

}  // namespace spillway::host
