#include <algorithm>
#include <limits>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"

namespace spillway::host {
namespace {

// Number of columns that a thread sums at a time.
constexpr std::size_t kGradientColumns = 64;

// Returns true if the number is a row of the table; false for a NaN.
bool is_row(float token, std::size_t vocabulary) {
  return token >= 0.F && token < static_cast<float>(vocabulary);
}

// Positions of an image's pixels and of their tokens.
struct Pixels {
  Pixels(const Layout& layout, const ImageTokensForward& op)
      : count{op.x.image.height * op.x.image.width},
        channels{op.x.image.channels},
        lanes{layout.lanes(op.x.image)},
        image{layout.padded(op.x.image).elements()},
        rows{layout, op.y()},
        first{op.class_token ? 1U : 0U} {}

  // Offsets of an element of image `n`, in the image and in the tokens.
  [[nodiscard]] std::size_t in_image(std::size_t n, std::size_t pixel, std::size_t channel) const {
    return n * image + (channel / lanes * count + pixel) * lanes + channel % lanes;
  }
  [[nodiscard]] std::size_t row(std::size_t n, std::size_t pixel) const {
    return (n * (count + first) + first + pixel) * rows.stride;
  }

  std::size_t count;
  std::size_t channels;
  std::size_t lanes;
  std::size_t image;  // elements per image
  TokenRows rows;
  std::size_t first;  // token of the first pixel
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingForward& op) {
  const TokenRows rows{machine.layout, op.y};
  const std::size_t vocabulary = op.vocabulary;
  return element_kernel_of(machine, op, [rows, vocabulary](auto elements, const auto& operands) {
    const float* const tokens = floats(operands.in.tokens);
    const float* const table = floats(operands.in.parameters);
    auto* const y = elements(operands.out.y);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < rows.count; ++i) {
      auto* const row = y + i * rows.stride;
      if (is_row(tokens[i], vocabulary)) {
        std::copy_n(table + static_cast<std::size_t>(tokens[i]) * rows.stride, rows.stride, row);
      } else {
        std::fill_n(row, rows.channels, std::numeric_limits<float>::quiet_NaN());
        rows.zero_padding(row);
      }
    }
  });
}

// Each thread sums its own columns over all tokens in order, for any number of threads.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingBackward& op) {
  const TokenRows rows{machine.layout, op.y};
  const std::size_t total = parts_of(machine.layout, op.forward().parameters()).total;
  const auto add = [rows, total, op](auto elements, const auto& operands) {
    const float* const tokens = floats(operands.in.tokens);
    const auto* const dy = elements(operands.in.dy);
    float* const table = floats(operands.out.dparameters);
    if (!op.accumulates) {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < total; ++i) table[i] = 0.F;
    }
#pragma omp parallel for schedule(static)
    for (std::size_t begin = 0; begin < rows.channels; begin += kGradientColumns) {
      const std::size_t end = std::min(begin + kGradientColumns, rows.channels);
      for (std::size_t i = 0; i < rows.count; ++i) {
        if (!is_row(tokens[i], op.vocabulary)) continue;
        float* const sum = table + static_cast<std::size_t>(tokens[i]) * rows.stride;
        const auto* const slope = dy + i * rows.stride;
        for (std::size_t c = begin; c < end; ++c) sum[c] += slope[c];
      }
    }
  };
  return element_kernel_of(machine, op, add);
}

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
