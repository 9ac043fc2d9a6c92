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
  std::size_t image;  // elements
  TokenRows rows;
  std::size_t first;  // token of a pixel
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ImageTokensForward& op) {
  const Pixels own{machine.layout, op};
  return element_kernel_of(machine, op, [pixels = own, op](auto elements, const auto& operands) {
    const auto* const x = elements(operands.in.x);
    auto* const y = elements(operands.out.y);
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      if (op.class_token) {
        std::copy_n(floats(operands.in.parameters), pixels.rows.stride,
                    y + n * (pixels.count + 1) * pixels.rows.stride);
      }
      for (std::size_t p = 0; p < pixels.count; ++p) {
        auto* const row = y + pixels.row(n, p);
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
  return element_kernel_of(
      machine, op, [pixels = own, op, total](auto elements, const auto& operands) {
        using T = typename decltype(elements)::Type;
        const T* const dy = elements(operands.in.dy);
        T* const dx = elements(operands.out.dx);
#pragma omp parallel for schedule(static)
        for (std::size_t n = 0; n < op.x.batch; ++n) {
          std::fill_n(dx + n * pixels.image, pixels.image, T{});
          for (std::size_t p = 0; p < pixels.count; ++p) {
            const T* const row = dy + pixels.row(n, p);
            for (std::size_t c = 0; c < pixels.channels; ++c) dx[pixels.in_image(n, p, c)] = row[c];
          }
        }
        if (!op.class_token) return;
        float* const sum = floats(operands.out.dparameters);
        std::fill_n(sum, total, 0.F);
        for (std::size_t n = 0; n < op.x.batch; ++n) {
          const T* const row = dy + n * (pixels.count + 1) * pixels.rows.stride;
          for (std::size_t c = 0; c < pixels.channels; ++c) sum[c] += row[c];
        }
      });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const FirstTokenForward& op) {
  const TokenRows rows{machine.layout, op.x};
  return element_kernel_of(machine, op, [rows, op](auto elements, const auto& operands) {
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      std::copy_n(elements(operands.in.x) + n * op.x.image.height * rows.stride, rows.stride,
                  elements(operands.out.y) + n * rows.stride);
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const FirstTokenBackward& op) {
  const TokenRows rows{machine.layout, op.x};
  return element_kernel_of(machine, op, [rows, op](auto elements, const auto& operands) {
    using T = typename decltype(elements)::Type;
    const std::size_t sequence = op.x.image.height * rows.stride;
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < op.x.batch; ++n) {
      T* const dx = elements(operands.out.dx) + n * sequence;
      std::copy_n(elements(operands.in.dy) + n * rows.stride, rows.stride, dx);
      std::fill(dx + rows.stride, dx + sequence, T{});
    }
  });
}

}  // namespace spillway::host
