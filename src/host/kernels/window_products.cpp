#include "src/host/kernels/window_products.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "src/host/kernels/channel_strips.h"
#include "src/host/kernels/kernels.h"
#include "src/host/layout/onednn.h"
#include "src/host/layout/parameter_layout.h"

namespace spillway::host {
namespace {

std::ptrdiff_t difference(std::size_t a, std::size_t b) {
  return static_cast<std::ptrdiff_t>(a) - static_cast<std::ptrdiff_t>(b);
}

// Returns the row or column of y to which `at` of x contributes through kernel position `tap`, if
// any.
std::optional<std::ptrdiff_t> target(std::size_t at, std::size_t padding, std::size_t tap,
                                     std::size_t dilation, std::size_t stride) {
  const std::ptrdiff_t distance = difference(at + padding, tap * dilation);
  const auto signed_stride = static_cast<std::ptrdiff_t>(stride);
  if (distance % signed_stride != 0) return std::nullopt;
  return distance / signed_stride;
}

using nets::Extent;

// Usual size of the workspace for windows and results: 1 MiB. This is enough for fast products, and
// little beside the activations of large images.
constexpr std::size_t kUsualFloats = std::size_t{1} << 18U;
// Each product packs all weights; this many windows are worth it, within 16 MiB.
constexpr std::size_t kEnoughRows = 256;
constexpr std::size_t kMostFloats = std::size_t{1} << 22U;

// The channels of one group in each pixel of a tensor. A single group includes the padding
// channels.
class GroupPixels {
 public:
  GroupPixels(const Layout& layout, const TensorShape& shape, std::size_t groups)
      : image_{layout.padded(shape.image)},
        lanes_{layout.lanes(shape.image)},
        channels_{groups == 1 ? image_.channels : shape.image.channels / groups},
        has_padding_{groups > 1 && image_.channels > shape.image.channels},
        elements_{layout.elements(shape)} {
    for (std::size_t group = 0; group < groups; ++group) add_stretches(group);
  }

  [[nodiscard]] std::size_t channels() const { return channels_; }
  [[nodiscard]] bool has_padding() const { return has_padding_; }
  [[nodiscard]] std::size_t elements() const { return elements_; }
  [[nodiscard]] bool is_inside(std::ptrdiff_t row, std::ptrdiff_t column) const {
    return row >= 0 && static_cast<std::size_t>(row) < image_.height && column >= 0 &&
           static_cast<std::size_t>(column) < image_.width;
  }

  // Calls visit(offset in the tensor, index in the group, count) for ranges of adjacent channels.
  template <class Visit>
  void for_each_stretch(std::size_t group, std::size_t image, std::size_t row, std::size_t column,
                        const Visit& visit) const {
    const std::size_t pixel = image * image_.elements() + (row * image_.width + column) * lanes_;
    for (const Stretch& stretch : stretches_[group]) {
      visit(pixel + stretch.place, stretch.first, stretch.count);
    }
  }

 private:
  struct Stretch {
    std::size_t place;  // offset of the range in the first pixel
    std::size_t first;
    std::size_t count;
  };

  void add_stretches(std::size_t group) {
    std::vector<Stretch>& stretches = stretches_.emplace_back();
    const std::size_t begin = group * channels_;
    for (std::size_t first = 0; first < channels_;) {
      const std::size_t channel = begin + first;
      const std::size_t count = std::min(channels_ - first, lanes_ - channel % lanes_);
      const std::size_t strip = channel / lanes_ * image_.height * image_.width * lanes_;
      stretches.push_back({.place = strip + channel % lanes_, .first = first, .count = count});
      first += count;
    }
  }

  nets::Shape image_;
  std::size_t lanes_;
  std::size_t channels_;
  bool has_padding_;
  std::size_t elements_;
  std::vector<std::vector<Stretch>> stretches_;  // by group
};

struct Pixel {
  std::size_t image;
  std::size_t row;
  std::size_t column;
};

// Returns pixel `number` of a phase, counted over all images, as indices within the phase.
Pixel pixel_of(const WindowPhase& phase, std::size_t number) {
  const std::size_t in_image = number % phase.pixels();
  return {.image = number / phase.pixels(),
          .row = in_image / phase.count.width,
          .column = in_image % phase.count.width};
}

// A range of a phase's pixels.
struct PixelRange {
  std::size_t first;
  std::size_t count;
};

// The tensors of a pass: it reads windows of `from` and computes pixels of `to`.
struct Pass {
  GroupPixels from;
  GroupPixels to;
  std::size_t images;
  std::size_t groups;
  std::vector<WindowPhase> phases;

  [[nodiscard]] std::size_t window(const WindowPhase& phase) const {
    return phase.taps.size() * from.channels();
  }
  [[nodiscard]] std::size_t longest_window() const {
    std::size_t longest = 0;
    for (const WindowPhase& phase : phases) longest = std::max(longest, window(phase));
    return longest;
  }
  [[nodiscard]] std::size_t rows_at_once() const {
    std::size_t most = 0;
    for (const WindowPhase& phase : phases) most = std::max(most, images * phase.pixels());
    const std::size_t row = longest_window() + to.channels();
    return std::clamp(std::max(kUsualFloats / row, std::min(kEnoughRows, kMostFloats / row)),
                      std::size_t{1}, most);
  }
  // Floats of the windows and of the pixels that one product handles.
  [[nodiscard]] std::size_t window_floats() const {
    return aligned(rows_at_once() * longest_window());
  }
  [[nodiscard]] std::size_t pixel_floats() const { return aligned(rows_at_once() * to.channels()); }

  // Calls visit(range) for consecutive ranges that cover all pixels of a phase.
  template <class Visit>
  void for_each_range(const WindowPhase& phase, const Visit& visit) const {
    const std::size_t all = images * phase.pixels();
    const std::size_t most = rows_at_once();
    for (std::size_t first = 0; first < all; first += most) {
      visit(PixelRange{.first = first, .count = std::min(most, all - first)});
    }
  }

  // Copies the windows of `range` into the rows of a matrix.
  template <class T>
  void take_windows(const WindowPhase& phase, const T* tensor, std::size_t group,
                    const PixelRange& range, float* rows) const {
    const std::size_t channels = from.channels();
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < range.count; ++i) {
      const Pixel pixel = pixel_of(phase, range.first + i);
      const auto top = static_cast<std::ptrdiff_t>(pixel.row * phase.source_step.height);
      const auto left = static_cast<std::ptrdiff_t>(pixel.column * phase.source_step.width);
      float* window = rows + i * phase.taps.size() * channels;
      for (const WindowTap& tap : phase.taps) {
        const std::ptrdiff_t row = top + tap.row;
        const std::ptrdiff_t column = left + tap.column;
        if (from.is_inside(row, column)) {
          from.for_each_stretch(group, pixel.image, static_cast<std::size_t>(row),
                                static_cast<std::size_t>(column),
                                [&](std::size_t place, std::size_t first, std::size_t count) {
                                  std::copy_n(tensor + place, count, window + first);
                                });
        } else {
          std::fill_n(window, channels, 0.F);
        }
        window += channels;
      }
    }
  }

  // Calls visit(offset in the tensor, offset in `rows`, index of the channel in its group, count)
  // for the pixels of `range`.
  template <class Visit>
  void for_each_pixel(const WindowPhase& phase, std::size_t group, const PixelRange& range,
                      const Visit& visit) const {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < range.count; ++i) {
      const Pixel pixel = pixel_of(phase, range.first + i);
      to.for_each_stretch(group, pixel.image, phase.first.height + pixel.row * phase.step.height,
                          phase.first.width + pixel.column * phase.step.width,
                          [&](std::size_t place, std::size_t first, std::size_t count) {
                            visit(place, i * to.channels() + first, first, count);
                          });
    }
  }
};

Pass forward_pass(const Layout& layout, const ConvolutionGeometry& g) {
  return {.from = {layout, g.x, g.groups},
          .to = {layout, g.y, g.groups},
          .images = g.x.batch,
          .groups = g.groups,
          .phases = forward_phases(g)};
}

Pass backward_pass(const Layout& layout, const ConvolutionGeometry& g) {
  return {.from = {layout, g.y, g.groups},
          .to = {layout, g.x, g.groups},
          .images = g.x.batch,
          .groups = g.groups,
          .phases = backward_phases(g)};
}

// Describes the weights as matrices, one per group and kernel position: source channels by target
// channels.
Desc matrices_desc(const Pass& pass, const Extent& kernel, Direction direction) {
  const bool reads_y = direction == Direction::kBackwardData;
  const std::size_t in = (reads_y ? pass.to : pass.from).channels();
  const std::size_t out = (reads_y ? pass.from : pass.to).channels();
  const std::size_t row = kernel.width * in * out;
  const dnnl::memory::data_type floats = dnnl::memory::data_type::f32;
  const std::size_t of_out = reads_y ? in : 1;
  const std::size_t of_in = reads_y ? 1 : out;
  if (pass.groups == 1) {
    return {dims({out, in, kernel.height, kernel.width}), floats,
            dims({of_out, of_in, row, in * out})};
  }
  return {dims({pass.groups, out, in, kernel.height, kernel.width}), floats,
          dims({kernel.height * row, of_out, of_in, row, in * out})};
}

// A pass, and how weights are reordered before or after it.
struct Products {
  Pass pass;
  Desc matrices;
  dnnl::reorder::primitive_desc reorder;
  ParameterParts parts;

  [[nodiscard]] std::size_t matrix_floats() const {
    return aligned(matrices.get_size() / sizeof(float));
  }
  [[nodiscard]] um::Bytes workspace() const {
    return float_bytes(matrix_floats() + pass.window_floats() + pass.pixel_floats()) +
           scratchpad_bytes(reorder);
  }
};

Products products_of(const Machine& machine, const ConvolutionGeometry& g,
                     const WeightedPrimitive& weighted) {
  const bool is_backward = weighted.direction == Direction::kBackwardData;
  Pass pass = is_backward ? backward_pass(machine.layout, g) : forward_pass(machine.layout, g);
  const Desc matrices = matrices_desc(pass, g.kernel, weighted.direction);
  const Desc& block = weighted.block_weights;
  const bool are_written = weighted.direction == Direction::kBackwardWeights;
  return {.pass = std::move(pass),
          .matrices = matrices,
          .reorder = reorder(machine.engine, are_written ? matrices : block,
                             are_written ? block : matrices),
          .parts = weighted.parts};
}

// The workspace holds the weights' matrices, windows, pixels, and the scratchpad of the reorder.
class ProductsKernel : public HostKernel {
 public:
  ProductsKernel(const Machine& machine, Products products)
      : HostKernel{machine, 3},
        layout_{machine.layout},
        products_{std::move(products)},
        reorder_{machine.engine,
                 dnnl::reorder(products_.reorder),
                 {{DNNL_ARG_FROM, products_.reorder.src_desc()},
                  {DNNL_ARG_TO, products_.reorder.dst_desc()},
                  {DNNL_ARG_SCRATCHPAD, products_.reorder.scratchpad_desc()}}} {}

 protected:
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] const Pass& pass() const { return products_.pass; }
  [[nodiscard]] const ParameterParts& parts() const { return products_.parts; }

  [[nodiscard]] static float* matrices(const KernelArguments& arguments) {
    return floats(arguments.workspace);
  }
  [[nodiscard]] float* windows(const KernelArguments& arguments) const {
    return matrices(arguments) + products_.matrix_floats();
  }
  [[nodiscard]] float* pixels(const KernelArguments& arguments) const {
    return windows(arguments) + pass().window_floats();
  }
  // Offset of the matrix of `group` for its first tap.
  [[nodiscard]] std::size_t matrix_of(std::size_t group) const {
    return group * (products_.matrices.get_size() / sizeof(float) / pass().groups);
  }

  void reorder(const KernelArguments& arguments, std::byte* from, std::byte* to) {
    float* const scratchpad = pixels(arguments) + pass().pixel_floats();
    reorder_.run({{DNNL_ARG_FROM, from},
                  {DNNL_ARG_TO, to},
                  {DNNL_ARG_SCRATCHPAD, reinterpret_cast<std::byte*>(scratchpad)}});
  }

 private:
  Layout layout_;
  Products products_;
  Call reorder_;
};

// Computes y from x, or dx from dy.
class PixelProducts final : public ProductsKernel {
 public:
  PixelProducts(const Machine& machine, Products products, bool has_bias, bool relu)
      : ProductsKernel{machine, std::move(products)}, has_bias_{has_bias}, relu_{relu} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<LinearForward>(arguments.operands);
    std::byte* const block = operands.in.parameters;
    reorder(arguments, block, arguments.workspace);
    const float* const bias = has_bias_ ? floats(block) + parts().second_begin : nullptr;
    with_elements(layout(), [&](auto elements) {
      auto* const to = elements(operands.out.y);
      if (pass().to.has_padding()) std::fill_n(to, pass().to.elements(), 0.F);
      bool had_memory = true;
      for (std::size_t group = 0; group < pass().groups; ++group) {
        for (const WindowPhase& phase : pass().phases) {
          pass().for_each_range(phase, [&](const PixelRange& range) {
            pass().take_windows(phase, elements(operands.in.x), group, range, windows(arguments));
            had_memory = multiply_windows(phase, group, range, arguments) && had_memory;
            finish(phase, group, range, pixels(arguments), bias, to);
          });
        }
      }
      expect_products(had_memory);
    });
  }

  // The matrices are in the order of kernel positions; a phase may use only some of them.
  [[nodiscard]] bool multiply_windows(const WindowPhase& phase, std::size_t group,
                                      const PixelRange& range,
                                      const KernelArguments& arguments) const {
    const std::size_t channels = pass().from.channels();
    const std::size_t results = pass().to.channels();
    if (phase.taps.empty()) {
      std::fill_n(pixels(arguments), range.count * results, 0.F);
      return true;
    }
    bool had_memory = true;
    for (std::size_t begin = 0; begin < phase.taps.size();) {
      const std::size_t number = phase.taps[begin].number;
      std::size_t end = begin + 1;
      while (end < phase.taps.size() && phase.taps[end].number == number + end - begin) ++end;
      const Matrix of_windows{.numbers = windows(arguments) + begin * channels,
                              .stride = pass().window(phase)};
      const Matrix weights{
          .numbers = matrices(arguments) + matrix_of(group) + number * channels * results,
          .stride = results};
      had_memory =
          multiply({.rows = range.count, .columns = results, .inner = (end - begin) * channels},
                   of_windows, weights, pixels(arguments), results, 1.F, begin > 0) &&
          had_memory;
      begin = end;
    }
    return had_memory;
  }

  template <class T>
  void finish(const WindowPhase& phase, std::size_t group, const PixelRange& range,
              const float* sums, const float* bias, T* to) const {
    const float* const of_group = bias == nullptr ? nullptr : bias + group * pass().to.channels();
    pass().for_each_pixel(
        phase, group, range,
        [&](std::size_t place, std::size_t sum, std::size_t channel, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) {
            float value = sums[sum + i];
            if (of_group != nullptr) value += of_group[channel + i];
            to[place + i] = relu_ && value < 0.F ? 0.F : value;
          }
        });
  }

  bool has_bias_;
  bool relu_;
};

// Sums over pixels in order.
class WeightProducts final : public ProductsKernel {
 public:
  WeightProducts(const Machine& machine, Products products, const ConvolutionGeometry& g)
      : ProductsKernel{machine, std::move(products)}, y_{machine.layout, g.y}, has_bias_{g.bias} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<LinearBackwardWeights>(arguments.operands);
    float* const gradient = floats(operands.out.dparameters);
    with_elements(layout(), [&](auto elements) {
      const auto* const dy = elements(operands.in.dy);
      bool had_memory = true;
      for (std::size_t group = 0; group < pass().groups; ++group) {
        const WindowPhase& all = pass().phases.front();
        pass().for_each_range(all, [&](const PixelRange& range) {
          pass().take_windows(all, elements(operands.in.x), group, range, windows(arguments));
          take_pixels(all, group, range, dy, pixels(arguments));
          had_memory = multiply_pixels(group, range, arguments) && had_memory;
        });
      }
      expect_products(had_memory);
      reorder(arguments, arguments.workspace, operands.out.dparameters);
      if (has_bias_) sum_channels(y_, dy, gradient + parts().second_begin);
    });
    zero_gaps(parts(), gradient);
  }

  template <class T>
  void take_pixels(const WindowPhase& phase, std::size_t group, const PixelRange& range,
                   const T* dy, float* rows) const {
    pass().for_each_pixel(phase, group, range,
                          [&](std::size_t place, std::size_t row, std::size_t, std::size_t count) {
                            std::copy_n(dy + place, count, rows + row);
                          });
  }

  [[nodiscard]] bool multiply_pixels(std::size_t group, const PixelRange& range,
                                     const KernelArguments& arguments) const {
    const std::size_t window = pass().window(pass().phases.front());
    const std::size_t results = pass().to.channels();
    return multiply({.rows = window, .columns = results, .inner = range.count},
                    {.numbers = windows(arguments), .stride = window, .transposed = true},
                    {.numbers = pixels(arguments), .stride = results},
                    matrices(arguments) + matrix_of(group), results, 1.F, range.first > 0);
  }

  Strips y_;
  bool has_bias_;
};

}  // namespace

std::vector<WindowPhase> forward_phases(const ConvolutionGeometry& g) {
  WindowPhase all{.first = nets::square(0),
                  .step = nets::square(1),
                  .count = {g.y.image.height, g.y.image.width},
                  .source_step = g.stride,
                  .taps = {}};
  for (std::size_t h = 0; h < g.kernel.height; ++h) {
    for (std::size_t w = 0; w < g.kernel.width; ++w) {
      all.taps.push_back({.number = h * g.kernel.width + w,
                          .row = difference(h * g.dilation.height, g.padding.height),
                          .column = difference(w * g.dilation.width, g.padding.width)});
    }
  }
  return {std::move(all)};
}

std::vector<WindowPhase> backward_phases(const ConvolutionGeometry& g) {
  const nets::Shape& x = g.x.image;
  std::vector<WindowPhase> phases;
  for (std::size_t row = 0; row < std::min(g.stride.height, x.height); ++row) {
    for (std::size_t column = 0; column < std::min(g.stride.width, x.width); ++column) {
      WindowPhase& phase = phases.emplace_back();
      phase.first = {row, column};
      phase.step = g.stride;
      phase.count = {(x.height - row - 1) / g.stride.height + 1,
                     (x.width - column - 1) / g.stride.width + 1};
      phase.source_step = nets::square(1);
      for (std::size_t h = 0; h < g.kernel.height; ++h) {
        const auto down = target(row, g.padding.height, h, g.dilation.height, g.stride.height);
        for (std::size_t w = 0; down && w < g.kernel.width; ++w) {
          const auto right = target(column, g.padding.width, w, g.dilation.width, g.stride.width);
          if (!right) continue;
          phase.taps.push_back({.number = h * g.kernel.width + w, .row = *down, .column = *right});
        }
      }
    }
  }
  return phases;
}

std::unique_ptr<Kernel> make_products(const Machine& machine, const ConvolutionForward& op,
                                      const WeightedPrimitive& weighted) {
  return std::make_unique<PixelProducts>(machine, products_of(machine, op.geometry, weighted),
                                         op.geometry.bias, op.relu);
}
std::unique_ptr<Kernel> make_products(const Machine& machine, const ConvolutionBackwardData& op,
                                      const WeightedPrimitive& weighted) {
  return std::make_unique<PixelProducts>(machine, products_of(machine, op.geometry, weighted),
                                         /*has_bias=*/false, /*relu=*/false);
}
std::unique_ptr<Kernel> make_products(const Machine& machine, const ConvolutionBackwardWeights& op,
                                      const WeightedPrimitive& weighted) {
  return std::make_unique<WeightProducts>(machine, products_of(machine, op.geometry, weighted),
                                          op.geometry);
}

um::Bytes products_workspace(const Machine& machine, const ConvolutionGeometry& geometry,
                             const WeightedPrimitive& weighted) {
  return products_of(machine, geometry, weighted).workspace();
}

}  // namespace spillway::host
