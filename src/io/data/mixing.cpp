#include "src/io/data/mixing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "src/io/random.h"
#include "src/ops/operation.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kRun = 1024;  // numbers of an image that are mixed at a time

std::size_t image_before(std::size_t i, std::size_t count) { return i == 0 ? count - 1 : i - 1; }

// Returns whether image `i` is mixed with the one before it: both need labels.
bool is_mixed(std::span<const std::int32_t> labels, std::size_t i) {
  const std::size_t before = image_before(i, labels.size() / kMixedLabelNumbers);
  return labels[i * kMixedLabelNumbers] >= 0 && labels[before * kMixedLabelNumbers] >= 0;
}

// Returns the range `middle` +- `half`, clamped to [0, end].
std::array<std::size_t, 2> range_around(std::size_t middle, std::size_t half, std::size_t end) {
  return {middle - std::min(middle, half), std::min(middle + half, end)};
}

}  // namespace

BatchMix::BatchMix(const MixOptions& options, const nets::Shape& image, Random random)
    : image_{image} {
  um::expects(options.is_on() && image.elements() > 0, "images to mix");
  const bool has_both = options.mixup > 0 && options.cutmix > 0;
  is_cut_ = has_both ? random.next() % 2 == 1 : options.cutmix > 0;
  const double kept =
      drawn_beta(static_cast<double>(is_cut_ ? options.cutmix : options.mixup), random);
  if (is_cut_) {
    draw_box(kept, random);
  } else {
    part_ = static_cast<float>(1 - kept);
  }
}

void BatchMix::draw_box(double kept, Random& random) {
  const double side = std::sqrt(1 - kept) / 2;
  const auto half_of = [&](std::size_t length) {
    return static_cast<std::size_t>(side * static_cast<double>(length));
  };
  const std::size_t column = random.next() % image_.width;
  const std::size_t row = random.next() % image_.height;
  const auto [left, right] = range_around(column, half_of(image_.width), image_.width);
  const auto [top, bottom] = range_around(row, half_of(image_.height), image_.height);
  box_ = {.top = top, .left = left, .bottom = bottom, .right = right};
  part_ = static_cast<float>(static_cast<double>((bottom - top) * (right - left)) /
                             static_cast<double>(image_.height * image_.width));
}

void BatchMix::apply(std::span<float> images, std::span<std::int32_t> labels) const {
  const std::size_t count = labels.size() / kMixedLabelNumbers;
  um::expects(count > 0 && images.size() == count * image_.elements(), "images and their labels");
  if (is_cut_) {
    for (std::size_t line = 0; line < image_.channels * (box_.bottom - box_.top); ++line) {
      const std::size_t height = box_.bottom - box_.top;
      const std::size_t row = line / height * image_.height + box_.top + line % height;
      mix(row * image_.width + box_.left, box_.right - box_.left, images, labels);
    }
  } else {
    mix(0, image_.elements(), images, labels);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t before = image_before(i, count);
    const bool mixes = is_mixed(labels, i);
    std::int32_t* const label = &labels[i * kMixedLabelNumbers];
    label[1] = mixes ? labels[before * kMixedLabelNumbers] : label[0];
    label[2] = std::bit_cast<std::int32_t>(mixes ? part_ : 0.F);
  }
}

// Mixes `count` numbers of each image from `begin` on. Goes from the last image to the first, so
// that each is mixed with its unmixed predecessor. The last image's numbers are saved for the first
// one.
void BatchMix::mix(std::size_t begin, std::size_t count, std::span<float> images,
                   std::span<const std::int32_t> labels) const {
  const std::size_t each = image_.elements();
  const std::size_t last = images.size() / each - 1;
  std::array<float, kRun> kept;
  for (std::size_t done = 0; done < count; done += kRun) {
    const std::size_t run = std::min(kRun, count - done);
    const auto part_of = [&](std::size_t i) {
      return images.subspan(i * each + begin + done, run);
    };
    std::ranges::copy(part_of(last), kept.begin());
    for (std::size_t i = last; i > 0; --i) {
      if (is_mixed(labels, i)) blend(part_of(i), part_of(i - 1));
    }
    if (is_mixed(labels, 0)) blend(part_of(0), std::span{kept}.first(run));
  }
}

void BatchMix::blend(std::span<float> own, std::span<const float> other) const {
  if (is_cut_) {
    std::ranges::copy(other, own.begin());
    return;
  }
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = (1 - part_) * own[i] + part_ * other[i];
}

}  // namespace spillway
