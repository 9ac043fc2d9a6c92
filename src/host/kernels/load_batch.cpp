#include <algorithm>
#include <cstring>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

// `number` returns the value of channel c at offset i in (C, H, W).
template <class T, class Number>
void put_image(const Layout& layout, const nets::Shape& shape, const Number& number, T* x) {
  const auto& [channels, height, width, form] = shape;
  for (std::size_t c = 0; c < layout.padded(shape).channels; ++c) {
    for (std::size_t h = 0; h < height; ++h) {
      for (std::size_t w = 0; w < width; ++w) {
        x[layout.index(shape, c, h, w)] =
            c < channels ? number(c, (c * height + h) * width + w) : 0.F;
      }
    }
  }
}

// Loads image `n` of the batch.
template <class T>
void load_image(const Layout& layout, const LoadBatch& op, const Batch& batch, std::size_t n,
                T* x) {
  const nets::Shape& shape = op.x.image;
  if (!op.has_bytes) {
    const float* const image = batch.images.data() + n * shape.elements();
    put_image(
        layout, shape, [image](auto /*c*/, auto i) { return image[i]; }, x);
  } else if (batch.labels[n * op.labels_each] < 0) {
    std::fill_n(x, layout.padded(shape).elements(), T{});
  } else {
    const std::uint8_t* const bytes = batch.bytes.data() + n * shape.elements();
    const float* const numbers = batch.byte_numbers.data();
    const auto number = [bytes, numbers](auto c, auto i) {
      return numbers[c * kByteValues + bytes[i]];
    };
    put_image(layout, shape, number, x);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LoadBatch& op) {
  const auto load = [layout = machine.layout, op](auto elements, const auto& operands,
                                                  const auto& arguments) {
    const Batch& batch = *arguments.context->batch;
    const std::size_t first = op.first_sample;
    um::expects(has_all_samples(batch, op), "a batch has all samples of the step");
    const std::size_t to = layout.padded(op.x.image).elements();
    const auto copy_to = [&](auto* x) {
#pragma omp parallel for schedule(static)
      for (std::size_t n = 0; n < op.x.batch; ++n) {
        load_image(layout, op, batch, first + n, x + n * to);
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
