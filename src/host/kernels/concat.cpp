#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

// Memory layout of a tensor's images.
struct Grid {
  Grid(const Layout& layout, const nets::Shape& image)
      : elements{layout.padded(image).elements()},
        lanes{layout.lanes(image)},
        pixels{image.height * image.width} {}

  // Offset in an image of pixel (0, 0) of a channel.
  [[nodiscard]] std::size_t start(std::size_t channel) const {
    return channel / lanes * lanes * pixels + channel % lanes;
  }

  std::size_t elements;  // per image
  std::size_t lanes;     // adjacent channels; also the stride between pixels
  std::size_t pixels;
};

// Channels that are adjacent both in a part and in the whole.
struct Strip {
  std::size_t part;
  std::size_t in_part;   // first channel in the part
  std::size_t in_whole;  // first channel in the whole
  std::size_t channels;
};

// Appends the strips of a part that starts at channel `first` of the whole. Strips are whole blocks
// of channels if `first` is a multiple of the block, otherwise pieces of blocks.
void append_strips(std::size_t part, std::size_t channels, const Grid& part_grid, std::size_t first,
                   const Grid& whole, std::vector<Strip>& strips) {
  for (std::size_t c = 0; c < channels;) {
    const std::size_t in_whole = first + c;
    const std::size_t room =
        std::min(part_grid.lanes - c % part_grid.lanes, whole.lanes - in_whole % whole.lanes);
    const std::size_t next = std::min(room, channels - c);
    strips.push_back({.part = part, .in_part = c, .in_whole = in_whole, .channels = next});
    c += next;
  }
}

template <class T>
void copy(const T* from, const Grid& source, T* to, const Grid& target, std::size_t channels) {
  if (channels == source.lanes && channels == target.lanes) {
    std::copy_n(from, channels * source.pixels, to);
    return;
  }
  for (std::size_t p = 0; p < source.pixels; ++p) {
    std::copy_n(from + p * source.lanes, channels, to + p * target.lanes);
  }
}

template <class T>
void add(const T* from, const Grid& source, T* to, const Grid& target, std::size_t channels) {
  const bool is_whole = channels == source.lanes && channels == target.lanes;
  const std::size_t rows = is_whole ? 1 : source.pixels;
  const std::size_t length = is_whole ? channels * source.pixels : channels;
  for (std::size_t p = 0; p < rows; ++p) {
    const T* const x = from + p * source.lanes;
    T* const y = to + p * target.lanes;
#pragma omp simd
    for (std::size_t i = 0; i < length; ++i) y[i] = y[i] + x[i];
  }
}

// Zeroes the padding channels of an image with `channels` channels.
template <class T>
void clear_padding(T* image, const Grid& grid, std::size_t channels) {
  const std::size_t padding = grid.elements / grid.pixels - channels;
  T* const first = image + grid.start(channels);
  for (std::size_t p = 0; p < grid.pixels && padding > 0; ++p) {
    std::fill_n(first + p * grid.lanes, padding, 0.F);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConcatForward& op) {
  const TensorShape shape = op.whole();
  const Grid whole{machine.layout, shape.image};
  std::vector<Grid> parts;
  std::vector<Strip> strips;
  std::size_t first = 0;
  for (std::size_t i = 0; i < op.parts.size(); ++i) {
    const nets::Shape& image = op.parts[i].image;
    parts.emplace_back(machine.layout, image);
    append_strips(i, image.channels, parts[i], first, whole, strips);
    first += image.channels;
  }
  return element_kernel_of(
      machine, op, [shape, whole, parts, strips](auto elements, const auto& operands) {
        auto* const y = elements(operands.out.y);
#pragma omp parallel for collapse(2) schedule(static)
        for (std::size_t n = 0; n < shape.batch; ++n) {
          for (const Strip& strip : strips) {
            const Grid& part = parts[strip.part];
            const auto* const x = elements(operands.in.parts[strip.part]) + n * part.elements;
            copy(x + part.start(strip.in_part), part,
                 y + n * whole.elements + whole.start(strip.in_whole), whole, strip.channels);
          }
        }
#pragma omp parallel for schedule(static)
        for (std::size_t n = 0; n < shape.batch; ++n) {
          clear_padding(y + n * whole.elements, whole, shape.image.channels);
        }
      });
}

// The sums that are read and the blocks that are written are the same.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ConcatBackward& op) {
  const Grid whole{machine.layout, op.y.image};
  std::vector<Grid> parts;
  std::vector<Strip> strips;
  for (std::size_t i = 0; i < op.slices.size(); ++i) {
    const nets::Shape& image = op.slices[i].x.image;
    parts.emplace_back(machine.layout, image);
    append_strips(i, image.channels, parts[i], op.slices[i].first_channel, whole, strips);
  }
  return element_kernel_of(
      machine, op, [op, whole, parts, strips](auto elements, const auto& operands) {
        using T = typename decltype(elements)::Type;
        const T* const dy = elements(operands.in.dy);
#pragma omp parallel for collapse(2) schedule(static)
        for (std::size_t n = 0; n < op.y.batch; ++n) {
          for (const Strip& strip : strips) {
            const Grid& part = parts[strip.part];
            auto* const dx = elements(operands.out.parts[strip.part]) + n * part.elements;
            const auto& move = op.slices[strip.part].accumulates ? add<T> : copy<T>;
            move(dy + n * whole.elements + whole.start(strip.in_whole), whole,
                 dx + part.start(strip.in_part), part, strip.channels);
          }
        }
#pragma omp parallel for collapse(2) schedule(static)
        for (std::size_t n = 0; n < op.y.batch; ++n) {
          for (std::size_t i = 0; i < parts.size(); ++i) {
            auto* const dx = elements(operands.out.parts[i]) + n * parts[i].elements;
            clear_padding(dx, parts[i], op.slices[i].x.image.channels);
          }
        }
      });
}

}  // namespace spillway::host
