#include "tests/golden/layer_golden.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "nets/shape.h"
#include "nets/shape_inference.h"
#include "nets/text/layer_text.h"
#include "tests/golden/drawn_numbers.h"

namespace spillway::test {
namespace {

constexpr std::string_view kRelu = " + relu";

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Parses a layer such as "convolution channels=4 kernel=3".
nets::Layer read_layer(const std::string& text) {
  const std::vector<std::string> words = split(text);
  nets::LayerText layer{.kind = words.at(0), .parameters = {}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    layer.parameters.push_back({words[i].substr(0, equals), words[i].substr(equals + 1)});
  }
  return nets::to_layer("layer", layer, 2);
}

// Parses "3x7x5", "5x7x1/sequence" or "1x7x1/tokens".
nets::Shape read_shape(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::vector<std::size_t> sides =
      nets::joined_numbers(text.substr(0, slash), 'x', 1000).value();
  if (text.ends_with("/sequence")) return nets::sequence(sides.at(1), sides.at(0));
  if (text.ends_with("/tokens")) return nets::tokens(sides.at(1));
  return {.channels = sides.at(0), .height = sides.at(1), .width = sides.at(2)};
}

LayerGolden read_case(const nlohmann::json& file, const nlohmann::json& one) {
  std::string words = one.at("layer");
  const std::string inputs = one.at("inputs");
  LayerGolden golden{.name = std::to_string(one.at("salt").get<int>()) + " " + words + " " + inputs,
                     .layer = {},
                     .relu = words.ends_with(kRelu),
                     .x = {},
                     .y = {},
                     .context = {.seed = file.at("seed"), .step = file.at("step")},
                     .stream = file.at("stream"),
                     .results = {}};
  if (golden.relu) words.resize(words.size() - kRelu.size());
  golden.layer = read_layer(words);
  std::vector<nets::Shape> shapes;
  for (const std::string& shape : split(inputs)) {
    shapes.push_back(read_shape(shape));
    golden.x.push_back({.batch = file.at("batch"), .image = shapes.back()});
  }
  golden.y = {.batch = file.at("batch"), .image = infer_shape("layer", golden.layer, shapes)};
  for (const auto& [part, numbers] : one.items()) {
    if (numbers.is_array()) golden.results[part] = numbers.get<LayerGolden::Numbers>();
  }
  return golden;
}

}  // namespace

std::vector<LayerGolden> LayerGolden::read_all() {
  std::ifstream text{std::string{SPILLWAY_GOLDEN_FILES} + "/layers.json"};
  const nlohmann::json file = nlohmann::json::parse(text);
  std::vector<LayerGolden> all;
  for (const auto& [number, one] : file.at("cases").items()) all.push_back(read_case(file, one));
  return all;
}

// Divides by 3: with the undivided numbers, 32 bits would represent any sum of products exactly.
LayerGolden::Numbers LayerGolden::drawn(const std::string& part, std::size_t count) const {
  Numbers numbers;
  for (const float number : draw(name + " " + part, count)) {
    numbers.push_back(static_cast<double>(number / 3));
  }
  return numbers;
}

LayerGolden::Numbers LayerGolden::running() const {
  const std::size_t channels = x[0].image.channels;
  Numbers numbers = drawn("running", 2 * channels);
  for (std::size_t i = channels; i < numbers.size(); ++i) numbers[i] = 1 + numbers[i] / 2;
  return numbers;
}

LayerGolden::Numbers LayerGolden::drawn_tokens(const std::string& part, std::size_t count,
                                               std::size_t vocabulary) const {
  const std::vector<std::int32_t> drawn = draw_labels(name + " " + part, count, vocabulary);
  return {drawn.begin(), drawn.end()};
}

std::vector<std::int32_t> LayerGolden::labels(std::size_t classes) const {
  const std::size_t positions = x[0].image.height * x[0].image.width;
  std::vector<std::int32_t> labels =
      draw_labels(name + " labels", x[0].batch * positions, classes + (positions > 1 ? 1 : 0));
  for (std::int32_t& label : labels) {
    if (label == static_cast<std::int32_t>(classes)) label = -1;
  }
  return labels;
}

}  // namespace spillway::test
