#include "src/io/data/synthetic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/io/file_digest.h"
#include "src/io/random.h"
#include "um/error.h"

namespace spillway {

// Red, green and blue between 0 and 1. Grey images use only the first.
using Colour = std::array<float, 3>;

// The cosine and sine of an angle.
struct Turn {
  float cosine = 1;
  float sine = 0;
};

// Everything about a synthetic image except its noise.
struct Scene {
  std::size_t figure = 0;
  float centre_x = 0;  //< pixels
  float centre_y = 0;
  float radius = 1;  //< pixels
  Turn turn;         //< of the figure
  Colour colour{};
  bool is_striped = false;
  Turn stripes;  //< across the stripes, in the figure's own axes
  float stripe_phase = 0;
  Colour left{};  //< the background is a gradient from this colour to the next
  Colour right{};
};

namespace {

// Signed distance of the point (u, v) from each figure's edge, negative inside; exact close to the
// edge. Figures fill the square from -1 to 1.
float length(float u, float v) { return std::sqrt(u * u + v * v); }

float box(float u, float v, float half_width, float half_height) {
  return std::max(std::abs(u) - half_width, std::abs(v) - half_height);
}

float disc(float u, float v) { return length(u, v) - 0.9F; }
float ring(float u, float v) { return std::abs(length(u, v) - 0.7F) - 0.2F; }
float square(float u, float v) { return box(u, v, 0.8F, 0.8F); }
float frame(float u, float v) { return std::abs(box(u, v, 0.7F, 0.7F)) - 0.2F; }
float triangle(float u, float v) {  // point up; 0.866 and 0.5: cosine and sine of 30 degrees
  return std::max(v - 0.5F, 0.866F * std::abs(u) - 0.5F * v - 0.5F);
}
float cross(float u, float v) { return std::min(box(u, v, 0.3F, 0.95F), box(u, v, 0.95F, 0.3F)); }
float diamond(float u, float v) { return 0.707F * (std::abs(u) + std::abs(v) - 0.95F); }
float bar(float u, float v) { return box(u, v, 0.95F, 0.3F); }
float half_disc(float u, float v) { return std::max(length(u, v) - 0.95F, v); }
float two_discs(float u, float v) { return length(std::abs(u) - 0.55F, v) - 0.4F; }

constexpr std::array kFigures{disc,  ring,    square, frame,     triangle,
                              cross, diamond, bar,    half_disc, two_discs};

constexpr std::size_t kHues = 10;
constexpr float kStripesAcross = 1.75F;  // per radius
constexpr float kDark = 0.35F;           // brightness of a dark stripe relative to the colour
constexpr float kNoise = 0.05F;

// The features that distinguish class `label`. Plain figures come first, then striped ones.
struct ClassLook {
  std::size_t figure;
  std::size_t hue;
  std::size_t hues;
  std::size_t pattern;
  std::size_t patterns;
};

ClassLook look_of(std::size_t label, std::size_t classes, bool is_grey) {
  const std::size_t looks = (classes + kFigures.size() - 1) / kFigures.size();  // for each figure
  const std::size_t hues = is_grey ? 1 : std::min(looks, kHues);
  const std::size_t look = label / kFigures.size();
  return {.figure = label % kFigures.size(),
          .hue = look % hues,
          .hues = hues,
          .pattern = look / hues,
          .patterns = (looks + hues - 1) / hues};
}

// Returns the angle 2 atan(`t`). Avoids the library's sine and cosine, which differ in the last bit
// between machines.
Turn turn_of_half_tangent(float t) {
  return {.cosine = (1 - t * t) / (1 + t * t), .sine = 2 * t / (1 + t * t)};
}

// `hue` goes once around the colour circle from 0 to 1.
Colour bright_colour(float hue, float brightness) {
  constexpr float kMin = 0.15F;
  Colour colour{};
  for (std::size_t c = 0; c < colour.size(); ++c) {
    const float shifted = hue + 1.0F - static_cast<float>(c) / 3.0F;
    const float away = std::abs((shifted - std::floor(shifted)) * 6.0F - 3.0F);  // 3: its own hue
    colour[c] = brightness * std::clamp(away - 1.0F, kMin, 1.0F);
  }
  return colour;
}

Colour dull_colour(Random& random) {
  const float light = random.uniform(0.05F, 0.35F);
  Colour colour{};
  for (float& value : colour) value = light + random.uniform(-0.05F, 0.05F);
  return colour;
}

// How much of a pixel the figure covers, and the brightness of its stripes there.
struct Ink {
  float cover = 0;
  float light = 1;
};

Ink ink_at(const Scene& scene, std::size_t x, std::size_t y) {
  const float dx = (static_cast<float>(x) + 0.5F - scene.centre_x) / scene.radius;
  const float dy = (static_cast<float>(y) + 0.5F - scene.centre_y) / scene.radius;
  constexpr float kReach = 1.5F;  // beyond the corner of a turned square
  if (std::abs(dx) > kReach || std::abs(dy) > kReach) return {};
  const float u = scene.turn.cosine * dx + scene.turn.sine * dy;
  const float v = scene.turn.cosine * dy - scene.turn.sine * dx;
  const float outside = kFigures[scene.figure](u, v) * scene.radius;  // pixels
  Ink ink{.cover = std::clamp(0.5F - outside, 0.0F, 1.0F)};
  if (ink.cover > 0 && scene.is_striped) {
    const float across = (scene.stripes.cosine * u + scene.stripes.sine * v) * kStripesAcross;
    const float place = across + scene.stripe_phase;
    ink.light = place - std::floor(place) < 0.5F ? 1.0F : kDark;
  }
  return ink;
}

// Returns uniform noise from 16 of the 64 bits.
float noise_of(std::uint64_t bits, std::size_t which) {
  const auto part = static_cast<float>(static_cast<std::int32_t>((bits >> (16 * which)) & 0xFFFFU));
  return kNoise * (part * (2.0F / 65536.0F) - 1.0F);
}

// Chooses at random what an image of class `label` shows.
// Requires: label < classes.
Scene compose_scene(std::size_t label, std::size_t classes, const nets::Shape& shape,
                    Random& random) {
  const bool is_grey = shape.channels == 1;
  const ClassLook look = look_of(label, classes, is_grey);
  const auto width = static_cast<float>(shape.width);
  const auto height = static_cast<float>(shape.height);
  Scene scene{.figure = look.figure};
  scene.radius = std::min(width, height) * random.uniform(0.25F, 0.4F);
  scene.centre_x = random.uniform(scene.radius, width - scene.radius);
  scene.centre_y = random.uniform(scene.radius, height - scene.radius);
  scene.turn = turn_of_half_tangent(random.uniform(-0.15F, 0.15F));  // up to 17 degrees
  const float brightness = random.uniform(0.75F, 1.0F);
  // With one hue for all classes, hue does not distinguish them: any colour will do.
  const float hue_reach = look.hues == 1 ? 0.5F : 0.25F;
  const float hue_error = random.uniform(-hue_reach, hue_reach);
  const float hue = (static_cast<float>(look.hue) + hue_error) / static_cast<float>(look.hues);
  scene.colour =
      is_grey ? Colour{brightness, brightness, brightness} : bright_colour(hue, brightness);
  scene.is_striped = look.pattern > 0;
  if (scene.is_striped) {  // half tangents from -1 to 1: from -90 to 90 degrees
    const float part = static_cast<float>(look.pattern - 1) / static_cast<float>(look.patterns - 1);
    scene.stripes = turn_of_half_tangent(2 * part - 1);
    scene.stripe_phase = random.uniform();
  }
  scene.left = dull_colour(random);
  scene.right = dull_colour(random);
  return scene;
}

// A row of pixels, without its colours.
struct DrawnRow {
  std::vector<float> cover;
  std::vector<float> light;
  std::vector<float> right;  // how far right, from 0 to 1
  std::vector<std::uint64_t> noise;
};

// Draws one channel of a row. Has no branch, so that it is vectorised.
void draw_channel(const Scene& scene, const DrawnRow& row, std::size_t colour,
                  std::span<float> pixels) {
  const float left = scene.left[colour];
  const float rise = scene.right[colour] - left;
  const float ink = scene.colour[colour];
  for (std::size_t x = 0; x < pixels.size(); ++x) {
    const float ground = left + rise * row.right[x];
    const float value = ground + (ink * row.light[x] - ground) * row.cover[x];
    pixels[x] = std::clamp(value + noise_of(row.noise[x], colour), 0.0F, 1.0F);
  }
}

// Draws `scene` and its noise, with values between 0 and 1, (C, H, W). Channels beyond the third
// repeat.
void draw_scene(const Scene& scene, const nets::Shape& shape, Random& random,
                std::span<float> image) {
  const std::size_t width = shape.width;
  DrawnRow row{.cover = std::vector<float>(width),
               .light = std::vector<float>(width),
               .right = std::vector<float>(width),
               .noise = std::vector<std::uint64_t>(width)};
  for (std::size_t x = 0; x < width; ++x) {
    row.right[x] = (static_cast<float>(x) + 0.5F) / static_cast<float>(width);
  }
  for (std::size_t y = 0; y < shape.height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const Ink ink = ink_at(scene, x, y);
      row.cover[x] = ink.cover;
      row.light[x] = ink.light;
      row.noise[x] = random.next();
    }
    for (std::size_t c = 0; c < shape.channels; ++c) {
      draw_channel(scene, row, c % 3, image.subspan((c * shape.height + y) * width, width));
    }
  }
}

// Writes the label of each pixel, row by row: `label` inside the figure, 0 in the background and
// -1 on the edge, where both are visible.
void mark_scene(const Scene& scene, const nets::Shape& shape, std::int32_t label,
                std::span<std::int32_t> labels) {
  for (std::size_t y = 0; y < shape.height; ++y) {
    for (std::size_t x = 0; x < shape.width; ++x) {
      const float cover = ink_at(scene, x, y).cover;
      const bool is_whole = cover == 0.0F || cover == 1.0F;
      labels[y * shape.width + x] = !is_whole ? -1 : cover == 1.0F ? label : 0;
    }
  }
}

template <typename Set>
DatasetPair make_pair(const nets::Shape& image, std::size_t classes, std::uint64_t seed) {
  return {
      .train = std::make_unique<Set>(image, classes, kSyntheticTrainImages, seed, Split::kTrain),
      .test = std::make_unique<Set>(image, classes, kSyntheticTestImages, seed, Split::kTest)};
}

constexpr std::size_t kMostSymbols = 64;
constexpr std::uint64_t kChain = 2;  // in the key of a generator, different from the splits

// Draws which of the four tokens follows: 0 with probability 1/2, 1 with 1/4, 2 and 3 with 1/8.
std::uint64_t draw_branch(Random& random) {
  return static_cast<std::uint64_t>(std::countl_zero(random.next() | 1ULL << 60U));
}

}  // namespace

SyntheticDataset::SyntheticDataset(const nets::Shape& image, std::size_t classes, std::size_t size,
                                   std::uint64_t seed, Split split)
    : image_{image}, classes_{classes}, size_{size}, seed_{seed}, split_{split} {
  um::expects(image.elements() > 0 && classes > 0 && size > 0, "images of at least one class");
}

std::string SyntheticDataset::name() const {
  return "synthetic images of " + std::to_string(classes_) + " classes";
}

std::int32_t SyntheticDataset::label(std::size_t index) const {
  um::expects(index < size_, "an image of the set");
  return static_cast<std::int32_t>(index % classes_);
}

void SyntheticDataset::read(std::size_t index, std::span<float> image) const {
  um::expects(index < size_ && image.size() == image_.elements(), "an image and room for it");
  Random random = this->random(index);
  const Scene scene = compose_scene(index % classes_, classes_, image_, random);
  draw_scene(scene, image_, random, image);
}

// The images depend on nothing else.
std::string SyntheticDataset::content_sha256() const {
  return sha256_of("drawn 1: " + nets::to_string(image_) + ", " + name() + ", " +
                   std::to_string(size_) + " from seed " + std::to_string(seed_) + ", split " +
                   std::to_string(static_cast<unsigned>(split_)));
}

Scene SyntheticDataset::scene(std::size_t index) const {
  Random random = this->random(index);
  return compose_scene(index % classes_, classes_, image_, random);
}

std::string SyntheticMasks::name() const {
  return "synthetic images whose pixels are of " + std::to_string(classes()) + " classes";
}

void SyntheticMasks::labels(std::size_t index, std::span<std::int32_t> labels) const {
  um::expects(labels.size() == labels_each(*this), "room for a label for each pixel");
  mark_scene(scene(index), image(), label(index), labels);
}

DatasetPair make_synthetic(const nets::Shape& image, std::size_t classes, std::uint64_t seed) {
  return make_pair<SyntheticDataset>(image, classes, seed);
}

DatasetPair make_synthetic_masks(const nets::Shape& image, std::size_t classes,
                                 std::uint64_t seed) {
  return make_pair<SyntheticMasks>(image, classes, seed);
}

// The last token and BERT's mask are not multiples of the stride below.
SyntheticText::SyntheticText(const TokenTask& task, std::size_t size, Split split)
    : TokenDataset{task},
      size_{size},
      split_{split},
      symbols_{std::min(kMostSymbols, task.vocabulary - 1)},
      stride_{(task.vocabulary - 1) / symbols_} {
  um::expects(size > 0 && task.vocabulary > 1, "windows of at least two tokens");
}

std::string SyntheticText::name() const {
  return "synthetic text of " + std::to_string(symbols_) + " tokens";
}

std::string SyntheticText::content_sha256() const {
  return sha256_of("drawn text 1: " + std::to_string(size_) + ", split " +
                   std::to_string(static_cast<unsigned>(split_)) + ", " + described_task());
}

void SyntheticText::read_window(std::size_t index, std::span<std::int32_t> tokens) const {
  const std::uint64_t seed = task().seed;
  Random random{seed, static_cast<std::uint64_t>(split_), index};
  std::uint64_t symbol = random.next() % symbols_;
  for (std::int32_t& token : tokens) {
    token = static_cast<std::int32_t>(symbol * stride_);
    symbol = Random{seed, kChain, symbol, draw_branch(random)}.next() % symbols_;
  }
}

DatasetPair make_synthetic_text(const TokenTask& task) {
  return {.train = std::make_unique<SyntheticText>(task, kSyntheticTrainTexts, Split::kTrain),
          .test = std::make_unique<SyntheticText>(task, kSyntheticTestTexts, Split::kTest)};
}

}  // namespace spillway
