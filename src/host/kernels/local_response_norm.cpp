#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

// The channels of a pixel, with zeros on both sides for windows that extend beyond them.
class Line {
 public:
  Line(std::size_t channels, std::size_t border)
      : border_{border}, numbers_(channels + 2 * border, 0.F) {}

  [[nodiscard]] float* channels() { return numbers_.data() + border_; }
  // The window of channel 0 begins here.
  [[nodiscard]] const float* windows() const { return numbers_.data(); }

 private:
  std::size_t border_;
  std::vector<float> numbers_;
};

// Buffers of one thread.
struct Lines {
  Line x;
  Line windowed;  // the terms that windows sum
  Line sums;
  Line base;  // k + alpha / size * sum of squares
  Line y;
  Line dy;
};

// The part that both directions share. oneDNN's LRN needs a workspace of twice the size of x that
// lives from forward to backward, and is fast for a single beta only.
class Lrn {
 public:
  template <class Op>
  Lrn(const Machine& machine, const Op& op)
      : images_{op.x.batch},
        pixels_{op.x.image.height * op.x.image.width},
        lanes_{machine.layout.lanes(op.x.image)},
        channels_{machine.layout.padded(op.x.image.channels)},
        norm_{op.norm},
        scale_{op.norm.alpha / static_cast<float>(op.norm.size)},
        lines_(machine.threads, make_lines()) {}

  [[nodiscard]] std::size_t images() const { return images_; }
  [[nodiscard]] std::size_t pixels() const { return pixels_; }
  // Returns the calling thread's buffers.
  [[nodiscard]] Lines& lines() { return lines_[static_cast<std::size_t>(omp_get_thread_num())]; }

  template <class T>
  void load(const T* tensor, std::size_t image, std::size_t pixel, Line& line) const {
    const T* from = tensor + start(image, pixel);
    for (std::size_t c = 0; c < channels_; c += lanes_, from += lanes_ * pixels_) {
      std::copy_n(from, lanes_, line.channels() + c);
    }
  }
  template <class T>
  void store(Line& line, std::size_t image, std::size_t pixel, T* tensor) const {
    T* to = tensor + start(image, pixel);
    for (std::size_t c = 0; c < channels_; c += lanes_, to += lanes_ * pixels_) {
      std::copy_n(line.channels() + c, lanes_, to);
    }
  }

  // Sums the windows of `of`.
  void sum_windows(const Line& of, Line& sums) const {
    float* const sum = sums.channels();
    std::fill_n(sum, channels_, 0.F);
    for (std::size_t i = 0; i < norm_.size; ++i) {
      const float* const term = of.windows() + i;
#pragma omp simd
      for (std::size_t c = 0; c < channels_; ++c) sum[c] += term[c];
    }
  }

  // Computes lines.base from lines.x.
  void compute_base(Lines& lines) const {
    const float* const x = lines.x.channels();
    float* const square = lines.windowed.channels();
    for (std::size_t c = 0; c < channels_; ++c) square[c] = x[c] * x[c];
    sum_windows(lines.windowed, lines.sums);
    const float* const sum = lines.sums.channels();
    float* const base = lines.base.channels();
    for (std::size_t c = 0; c < channels_; ++c) base[c] = norm_.k + scale_ * sum[c];
  }

  // to = from / base^beta
  void divide_by_power(Line& base_line, const float* from, float* to) const {
    const float* const base = base_line.channels();
    if (norm_.beta == 0.75F) {  // square roots vectorise, powers do not
#pragma omp simd
      for (std::size_t c = 0; c < channels_; ++c) {
        const float root = std::sqrt(base[c]);
        to[c] = from[c] / (root * std::sqrt(root));
      }
    } else {
      for (std::size_t c = 0; c < channels_; ++c) to[c] = from[c] * std::pow(base[c], -norm_.beta);
    }
  }

  // Computes dx in line.dy: dy / base^beta - 2 alpha / size beta x * (window sum of dy y / base).
  void differentiate(Lines& line) const {
    const float* const x = line.x.channels();
    const float* const y = line.y.channels();
    const float* const base = line.base.channels();
    float* const dy = line.dy.channels();
    float* const term = line.windowed.channels();
    for (std::size_t c = 0; c < channels_; ++c) term[c] = dy[c] * y[c] / base[c];
    sum_windows(line.windowed, line.sums);
    divide_by_power(line.base, dy, dy);
    const float* const sum = line.sums.channels();
    const float factor = 2 * scale_ * norm_.beta;
    for (std::size_t c = 0; c < channels_; ++c) dy[c] -= factor * x[c] * sum[c];
  }

 private:
  [[nodiscard]] Lines make_lines() const {
    const std::size_t border = norm_.size / 2;
    const Line plain{channels_, 0};
    const Line bordered{channels_, border};
    return {
        .x = plain, .windowed = bordered, .sums = plain, .base = plain, .y = plain, .dy = plain};
  }
  [[nodiscard]] std::size_t start(std::size_t image, std::size_t pixel) const {
    return image * pixels_ * channels_ + pixel * lanes_;
  }

  std::size_t images_;
  std::size_t pixels_;
  std::size_t lanes_;
  std::size_t channels_;  // includes padding, which is zero and stays zero
  nets::LocalResponseNorm norm_;
  float scale_;               // alpha / size
  std::vector<Lines> lines_;  // by thread
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LrnForward& op) {
  return element_kernel_of(
      machine, op, [lrn = Lrn{machine, op}](auto elements, const auto& operands) mutable {
        const auto* const x = elements(operands.in.x);
        auto* const y = elements(operands.out.y);
#pragma omp parallel for collapse(2) schedule(static)
        for (std::size_t n = 0; n < lrn.images(); ++n) {
          for (std::size_t p = 0; p < lrn.pixels(); ++p) {
            Lines& line = lrn.lines();
            lrn.load(x, n, p, line.x);
            lrn.compute_base(line);
            lrn.divide_by_power(line.base, line.x.channels(), line.y.channels());
            lrn.store(line.y, n, p, y);
          }
        }
      });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LrnBackward& op) {
  return element_kernel_of(machine, op,
                           [lrn = Lrn{machine, op}](auto elements, const auto& operands) mutable {
                             auto* const dx = elements(operands.out.dx);
#pragma omp parallel for collapse(2) schedule(static)
                             for (std::size_t n = 0; n < lrn.images(); ++n) {
                               for (std::size_t p = 0; p < lrn.pixels(); ++p) {
                                 Lines& line = lrn.lines();
                                 lrn.load(elements(operands.in.x), n, p, line.x);
                                 lrn.load(elements(operands.in.y), n, p, line.y);
                                 lrn.load(elements(operands.in.dy), n, p, line.dy);
                                 lrn.compute_base(line);
                                 lrn.differentiate(line);
                                 lrn.store(line.dy, n, p, dx);
                               }
                             }
                           });
}

}  // namespace spillway::host
