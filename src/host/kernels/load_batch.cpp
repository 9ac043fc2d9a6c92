#include <cstring>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

template <class T>
void copy_image(const Layout& layout, const nets::Shape& shape, const float* image, T* x) {
  const auto& [channels, height, width, form] = shape;
  for (std::size_t c = 0; c < layout.padded(shape).channels; ++c) {
    for (std::size_t h = 0; h < height; ++h) {
      for (std::size_t w = 0; w < width; ++w) {
        x[layout.index(shape, c, h, w)] = c < channels ? image[(c * height + h) * width + w] : 0.F;
      }
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LoadBatch& op) {
  const auto load = [layout = machine.layout, op](auto elements, const auto& operands,
                                                  const auto& arguments) {
    const Batch& batch = *arguments.context->batch;
    const std::size_t from = op.x.image.elements();
    const std::size_t first = arguments.context->first_sample;
    um::expects(has_all_samples(batch, op.x, op.labels_each, first),
                "a batch has all samples of the step");
    const std::size_t to = layout.padded(op.x.image).elements();
    const auto copy_to = [&](auto* x) {
#pragma omp parallel for schedule(static)
      for (std::size_t n = 0; n < op.x.batch; ++n) {
        copy_image(layout, op.x.image, batch.images.data() + (first + n) * from, x + n * to);
      }
    };
    if (op.x.image.form == nets::Form::kTokens) {
      copy_to(floats(operands.out.x));
    } else {
      copy_to(elements(operands.out.x));
    }
    std::memcpy(operands.out.labels, batch.labels.data() + first * op.labels_each,
                op.label_count() * sizeof(std::int32_t));
  };
  return element_kernel_of(machine, op, load);
}

}  // namespace spillway::host
