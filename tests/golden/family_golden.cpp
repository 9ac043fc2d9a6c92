#include "tests/golden/family_golden.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/golden/drawn_numbers.h"

namespace spillway::test {
namespace {

nlohmann::json read_file(const std::string& name) {
  std::ifstream text{std::string{SPILLWAY_GOLDEN_FILES} + "/" + name};
  return nlohmann::json::parse(text);
}

// Returns images, or for a text tokens of the vocabulary.
std::vector<float> draw_images(const nets::Network& network, const std::string& name,
                               std::size_t batch) {
  const std::size_t count = batch * network.input().elements();
  if (network.input().form != nets::Form::kTokens) return draw(name, count);
  const std::vector<std::int32_t> drawn = draw_labels(name, count, network.classes());
  return {drawn.begin(), drawn.end()};
}

}  // namespace

FamilyGolden FamilyGolden::read(const std::string& name) {
  const nlohmann::json file = read_file("families.json");
  const nlohmann::json& network = file.at("networks").at(name);
  FamilyGolden golden{
      .name = name,
      .prefix = name + " " + std::to_string(network.at("salt").get<int>()),
      .batch = file.at("batch"),
      .batches = file.at("batches"),
      .seed = file.at("seed"),
      .learning_rate = network.at("learning_rate"),
      .sgd = {.momentum = file.at("momentum"), .weight_decay = file.at("weight_decay")},
      .losses = network.at("losses"),
      .gradient_norms = {}};
  for (const auto& [stage, norms] : network.at("gradient_norms").items()) {
    for (const auto& [block, norm] : norms.items()) golden.gradient_norms[block] = norm;
  }
  return golden;
}

FamilyGolden FamilyGolden::read_bf16(const std::string& name) {
  FamilyGolden golden = read(name);
  const nlohmann::json network = read_file("families_bf16.json").at("networks").at(name);
  golden.losses = network.at("losses").get<std::vector<double>>();
  golden.gradient_norms = network.at("gradient_norms").get<std::map<std::string, double>>();
  golden.loss_rounding = network.at("loss_rounding");
  golden.norm_rounding = network.at("norm_rounding");
  return golden;
}

std::vector<std::string> FamilyGolden::names() {
  std::vector<std::string> names;
  const nlohmann::json file = read_file("families.json");
  for (const auto& [name, network] : file.at("networks").items()) names.push_back(name);
  return names;
}

Batch FamilyGolden::make_batch(const nets::Network& network, std::uint64_t step) const {
  const std::string number = std::to_string(step % batches);
  const auto [height, width] = network.labels();
  const bool is_per_pixel = height * width > 1;
  const auto classes = static_cast<std::int32_t>(network.classes());
  const auto images = draw_images(network, prefix + " images " + number, batch);
  const auto labels = draw_labels(prefix + " labels " + number, batch * height * width,
                                  network.classes() + (is_per_pixel ? 1 : 0));
  Batch made{.images{images.begin(), images.end()}, .labels{labels.begin(), labels.end()}};
  for (std::int32_t& label : made.labels) label = label == classes ? -1 : label;
  return made;
}

}  // namespace spillway::test
