#include <algorithm>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"

namespace spillway::host {
namespace {

// Where the pixels of an image lie, and their tokens.
struct Pixels {
  Pixels(const Layout& layout, const ImageTokensForward& op)
      : count{op.x.image.height * op.x.image.width},
        channels{op.x.image.channels},
        lanes{layout.lanes(op.x.image)},
        image{layout.padded(op.x.image).elements()},
        rows{layout, op.y()},
        first{op.class_token ? 1U : 0U} {}

  // Of an element of image `n`: the image's, and the token's.
  [[nodiscard]] std::size_t in_image(std::size_t n, std::size_t pixel, std::size_t channel) const {
    return n * image + (channel / lanes * count + pixel) * lanes + channel % lanes;
  }
  [[nodiscard]] std::size_t row(std::size_t n, std::size_t pixel) const {
    return (n * (count + first) + first + pixel) * rows.stride;
  }

  std::size_t count;
  std::size_t channels;
  std::size_t lanes;
  std::size_t image;  // floats
  TokenRows rows;
  std::size_t first;  // token of a pixel
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ImageTokensForward& op) {
  return kernel_of(machine, op, [pixels = Pixels{machine.layout, op}, op](const auto& operands) {
    const float* const x = floats(operands.in.x);
    float* const y = floats(operands.out.y);
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      if (op.class_token) {
        std::copy_n(floats(operands.in.parameters), pixels.rows.stride,
                    y + n * (pixels.count + 1) * pixels.rows.stride);
      }
      for (std::size_t p = 0; p < pixels.count; ++p) {
        float* const row = y + pixels.row(n, p);
        for (std::size_t c = 0; c < pixels.channels; ++c) row[c] = x[pixels.in_image(n, p, c)];
        pixels.rows.zero_padding(row);
      }
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ImageTokensBackward& op) {
  const Pixels own{machine.layout, op.forward()};
  const ClassTokenParameters token{.features = op.x.image.channels};
  const std::size_t total = parts_of(machine.layout, token).total;
  return kernel_of(machine, op, [pixels = own, op, total](const auto& operands) {
    const float* const dy = floats(operands.in.dy);
    float* const dx = floats(operands.out.dx);
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      std::fill_n(dx + n * pixels.image, pixels.image, 0.F);
      for (std::size_t p = 0; p < pixels.count; ++p) {
        const float* const row = dy + pixels.row(n, p);
        for (std::size_t c = 0; c < pixels.channels; ++c) dx[pixels.in_image(n, p, c)] = row[c];
      }
    }
    if (!op.class_token) return;
    float* const sum = floats(operands.out.dparameters);
    std::fill_n(sum, total, 0.F);
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      const float* const row = dy + n * (pixels.count + 1) * pixels.rows.stride;
      for (std::size_t c = 0; c < pixels.channels; ++c) sum[c] += row[c];
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const FirstTokenForward& op) {
  const TokenRows rows{machine.layout, op.x};
  return kernel_of(machine, op, [rows, op](const auto& operands) {
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      std::copy_n(floats(operands.in.x) + n * op.x.image.height * rows.stride, rows.stride,
                  floats(operands.out.y) + n * rows.stride);
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const FirstTokenBackward& op) {
  const TokenRows rows{machine.layout, op.x};
  return kernel_of(machine, op, [rows, op](const auto& operands) {
    const std::size_t sequence = op.x.image.height * rows.stride;
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      float* const dx = floats(operands.out.dx) + n * sequence;
      std::copy_n(floats(operands.in.dy) + n * rows.stride, rows.stride, dx);
      std::fill(dx + rows.stride, dx + sequence, 0.F);
    }
  });
}

}  // namespace spillway::host
