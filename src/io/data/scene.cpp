#include "src/io/data/scene.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace spillway {
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
struct Look {
  std::size_t figure;
  std::size_t hue;
  std::size_t hues;
  std::size_t pattern;
  std::size_t patterns;
};

Look look_of(std::size_t label, std::size_t classes, bool is_grey) {
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
  const auto part = static_cast<float>((bits >> (16 * which)) & 0xFFFFU);
  return kNoise * (part * (2.0F / 65536.0F) - 1.0F);
}

}  // namespace

Scene compose_scene(std::size_t label, std::size_t classes, const nets::Shape& shape,
                    Random& random) {
  const bool is_grey = shape.channels == 1;
  const Look look = look_of(label, classes, is_grey);
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

void draw_scene(const Scene& scene, const nets::Shape& shape, Random& random,
                std::span<float> image) {
  const std::size_t plane = shape.height * shape.width;
  for (std::size_t y = 0; y < shape.height; ++y) {
    for (std::size_t x = 0; x < shape.width; ++x) {
      const Ink ink = ink_at(scene, x, y);
      const float right = (static_cast<float>(x) + 0.5F) / static_cast<float>(shape.width);
      const std::uint64_t noise = random.next();
      for (std::size_t c = 0; c < shape.channels; ++c) {
        const std::size_t k = c % 3;
        const float ground = scene.left[k] + (scene.right[k] - scene.left[k]) * right;
        const float value = ground + (scene.colour[k] * ink.light - ground) * ink.cover;
        image[c * plane + y * shape.width + x] = std::clamp(value + noise_of(noise, k), 0.0F, 1.0F);
      }
    }
  }
}

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

}  // namespace spillway
