#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "nets/shape_inference.h"
#include "src/ops/operation.h"
#include "tests/src/host/kernel_runner.h"

namespace spillway::host {

/// Layers by their definitions, in double, on values in canonical order.

inline std::size_t place(const TensorShape& shape, std::size_t n, std::size_t c, std::size_t h,
                         std::size_t w) {
  return ((n * shape.image.channels + c) * shape.image.height + h) * shape.image.width + w;
}

/// Returns the shape of the layer's output for x.
inline TensorShape output_shape(const TensorShape& x, const nets::Layer& layer) {
  return {.batch = x.batch, .image = nets::infer_shape("layer", layer, {x.image})};
}

/// How a window moves over an image.
struct Sliding {
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  nets::Extent dilation = nets::square(1);
};

/// Calls visit(offset in y, offset in x, tap of the kernel) for each pixel of channel `cy` of y and
/// each pixel of channel `cx` of x in its window.
template <class Geometry, class Visit>
void for_each_tap(const Geometry& g, std::size_t n, std::size_t cy, std::size_t cx,
                  const Sliding& sliding, const Visit& visit) {
  const auto& [kernel, stride, padding, dilation] = sliding;
  for (std::size_t h = 0; h < g.y.image.height; ++h) {
    for (std::size_t w = 0; w < g.y.image.width; ++w) {
      for (std::size_t tap = 0; tap < kernel.height * kernel.width; ++tap) {
        const std::size_t row = h * stride.height + tap / kernel.width * dilation.height;
        const std::size_t column = w * stride.width + tap % kernel.width * dilation.width;
        if (row < padding.height || row - padding.height >= g.x.image.height) continue;
        if (column < padding.width || column - padding.width >= g.x.image.width) continue;
        visit(place(g.y, n, cy, h, w),
              place(g.x, n, cx, row - padding.height, column - padding.width), tap);
      }
    }
  }
}

/// Calls visit(offset in y, offset in x, index of the weight) for each product of a convolution.
template <class Visit>
void for_each_product(const ConvolutionGeometry& g, const Visit& visit) {
  const std::size_t taps = g.kernel.height * g.kernel.width;
  const std::size_t in = g.x.image.channels / g.groups;
  for (std::size_t n = 0; n < g.x.batch; ++n) {
    for (std::size_t o = 0; o < g.y.image.channels; ++o) {
      const std::size_t first = o / (g.y.image.channels / g.groups) * in;  // of its group
      for (std::size_t i = 0; i < in; ++i) {
        for_each_tap(g, n, o, first + i, {g.kernel, g.stride, g.padding, g.dilation},
                     [&](std::size_t y, std::size_t x, std::size_t tap) {
                       visit(y, x, (o * in + i) * taps + tap);
                     });
      }
    }
  }
}

/// The same for a transposed convolution: a pixel of x adds its multiple of the kernel to y.
template <class Visit>
void for_each_product(const TransposedConvolutionGeometry& g, const Visit& visit) {
  for_each_product(g.adjoint(),
                   [&](std::size_t x, std::size_t y, std::size_t weight) { visit(y, x, weight); });
}
template <class Visit>
void for_each_product(const LinearGeometry& g, const Visit& visit) {
  const std::size_t in = g.x.image.elements();
  for (std::size_t n = 0; n < g.x.batch; ++n) {
    for (std::size_t o = 0; o < g.features; ++o) {
      for (std::size_t i = 0; i < in; ++i) visit(n * g.features + o, n * in + i, o * in + i);
    }
  }
}

inline std::size_t channel_of(const TensorShape& shape, std::size_t at) {
  return at / (shape.image.height * shape.image.width) % shape.image.channels;
}

inline TensorShape y_of(const LinearGeometry& g) {
  return {.batch = g.x.batch, .image = {.channels = g.features}};
}
template <class Geometry>
TensorShape y_of(const Geometry& g) {
  return g.y;
}

/// Returns a weighted layer's output: sums of products, plus the biases, which are last in
/// `parameters`.
template <class Geometry>
Values naive_sums(const Geometry& g, const Values& x, const Values& parameters) {
  const TensorShape shape = y_of(g);
  const std::size_t biases = parameters.size() - shape.image.channels;
  Values y(shape.elements(), 0.0);
  for (std::size_t at = 0; g.bias && at < y.size(); ++at) {
    y[at] = parameters[biases + channel_of(shape, at)];
  }
  for_each_product(g, [&](std::size_t to, std::size_t from, std::size_t weight) {
    y[to] += x[from] * parameters[weight];
  });
  return y;
}

inline Values naive_relu(Values y) {
  for (double& value : y) value = std::max(value, 0.0);
  return y;
}

/// Returns the mean of each channel, then the biased variance of each.
inline Values naive_statistics(const TensorShape& shape, const Values& x) {
  const std::size_t channels = shape.image.channels;
  const std::size_t values_each = shape.elements() / channels;
  const auto count = static_cast<double>(values_each);
  Values statistics(2 * channels, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) statistics[channel_of(shape, i)] += x[i] / count;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(shape, i);
    statistics[channels + c] += std::pow(x[i] - statistics[c], 2) / count;
  }
  return statistics;
}

/// Parameters are (gamma, beta), statistics (mean, variance).
inline Values naive_batch_norm(const TensorShape& shape, double epsilon, const Values& x,
                               const Values& parameters, const Values& statistics) {
  const std::size_t channels = shape.image.channels;
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(shape, i);
    y[i] = parameters[c] * (x[i] - statistics[c]) / std::sqrt(statistics[channels + c] + epsilon) +
           parameters[channels + c];
  }
  return y;
}

inline Values naive_pool(const PoolForward& op, const Values& x) {
  const bool is_max = op.pool.kind == nets::PoolKind::kMax;
  Values y(op.y.elements(), is_max ? std::numeric_limits<double>::lowest() : 0.0);
  Values counts(y.size(), 0.0);
  for (std::size_t n = 0; n < op.x.batch; ++n) {
    for (std::size_t c = 0; c < op.x.image.channels; ++c) {
      for_each_tap(op, n, c, c, {op.pool.kernel, op.pool.stride, op.pool.padding},
                   [&](std::size_t to, std::size_t from, std::size_t /*tap*/) {
                     y[to] = is_max ? std::max(y[to], x[from]) : y[to] + x[from];
                     counts[to] += 1;
                   });
    }
  }
  const auto taps = static_cast<double>(op.pool.kernel.height * op.pool.kernel.width);
  for (std::size_t i = 0; i < y.size() && !is_max; ++i) {
    y[i] /= op.pool.counts_padding ? taps : counts[i];
  }
  return y;
}

/// Returns the sum of -log softmax(row)[label] over the rows with a label that is not negative.
inline double naive_cross_entropy(std::size_t classes, const Values& logits,
                                  const std::vector<std::int32_t>& labels) {
  double loss = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0) continue;
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[n * classes + c]);
    loss += std::log(sum) - logits[n * classes + static_cast<std::size_t>(labels[n])];
  }
  return loss;
}

}  // namespace spillway::host
