#include "tests/golden/golden_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "tests/golden/drawn_numbers.h"

namespace spillway::test {
namespace {

// The values a block starts with, drawn from sequences whose names begin with `name`.
struct Start {
  std::string name;

  [[nodiscard]] std::vector<float> numbers(const std::string& part, std::size_t count, float scale,
                                           float shift = 0) const {
    std::vector<float> drawn = draw(name + part, count);
    for (float& number : drawn) number = shift + scale * number;
    return drawn;
  }
  [[nodiscard]] std::vector<float> weighted(std::size_t out, std::size_t fan_in, bool bias) const {
    std::vector<float> values = numbers("", out * fan_in, weight_scale(fan_in));
    return bias ? joined(std::move(values), numbers(".bias", out, 0.25F)) : values;
  }
  static std::vector<float> joined(std::vector<float> first, const std::vector<float>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  std::vector<float> operator()(const ConvolutionParameters& p) const {
    return weighted(p.out, p.in / p.groups * p.kernel.height * p.kernel.width, p.bias);
  }
  std::vector<float> operator()(const TransposedConvolutionParameters& p) const {
    const std::size_t fan_in = p.in / p.groups * p.kernel.height * p.kernel.width;
    std::vector<float> values = numbers("", element_count(p.adjoint()), weight_scale(fan_in));
    return p.bias ? joined(std::move(values), numbers(".bias", p.out, 0.25F)) : values;
  }
  std::vector<float> operator()(const LinearParameters& p) const {
    return weighted(p.out, p.in.elements(), p.bias);
  }
  std::vector<float> operator()(const BatchNormParameters& p) const {
    return joined(numbers("", p.channels, 0.5F, 1), numbers(".bias", p.channels, 0.5F));
  }
  std::vector<float> operator()(const BatchNormStatistics& p) const {
    return joined(numbers(".mean", p.channels, 0.25F), numbers(".variance", p.channels, 0.5F, 1));
  }
};

// "norm" of "norm.running".
std::string layer_name(const StateBlock& block) {
  return block.role == StateRole::kStatistics ? block.name.substr(0, block.name.rfind('.'))
                                              : block.name;
}

}  // namespace

GoldenFile GoldenFile::read(const std::string& name) {
  std::ifstream text{std::string{SPILLWAY_GOLDEN_FILES} + "/" + name + ".json"};
  const nlohmann::json file = nlohmann::json::parse(text);
  GoldenFile golden{
      .name = name,
      .salt = file.at("salt"),
      .batch = file.at("batch"),
      .batches = file.at("batches"),
      .learning_rate = file.at("learning_rate"),
      .sgd = {.momentum = file.at("momentum"), .weight_decay = file.at("weight_decay")},
      .losses = file.at("losses"),
      .gradients = file.at("gradients"),
      .running_after_first = file.at("running_after_first"),
      .running_after_last = file.at("running_after_last"),
      .evaluation_loss = file.at("evaluation").at("loss"),
      .evaluation_correct = file.at("evaluation").at("correct")};
  return golden;
}

std::vector<BlockNumbers> GoldenFile::initial_state(const Step& step) const {
  std::vector<BlockNumbers> blocks;
  for (const StateBlock& block : step.state) {
    BlockNumbers numbers{.name = block.name,
                         .values = std::vector<float>(element_count(block.spec))};
    if (block.role != StateRole::kMomentum) {
      numbers.values =
          std::visit(Start{.name = std::to_string(salt) + " " + layer_name(block)}, block.spec);
    }
    blocks.push_back(std::move(numbers));
  }
  return blocks;
}

Batch GoldenFile::make_batch(const nets::Network& network, std::uint64_t step) const {
  const std::string prefix = std::to_string(salt) + " ";
  const std::string number = std::to_string(step % batches);
  return {.images = draw(prefix + "images " + number, batch * network.input().elements()),
          .labels = draw_labels(prefix + "labels " + number, batch, network.classes())};
}

}  // namespace spillway::test
