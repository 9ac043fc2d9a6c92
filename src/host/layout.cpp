#include "src/host/layout.h"

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

Desc Layout::desc(const TensorShape& shape) const {
  using Tag = dnnl::memory::format_tag;
  const auto& [channels, height, width] = shape.image;
  const Tag blocked = block_ == 16 ? Tag::nChw16c : Tag::nChw8c;
  return float_desc({shape.batch, padded(channels), height, width},
                    is_dense(channels) ? Tag::nchw : blocked);
}

}  // namespace spillway::host
