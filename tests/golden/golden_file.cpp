#include "tests/golden/golden_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/golden/drawn_numbers.h"

namespace spillway::test {
namespace {

std::vector<OtherOptimizer> read_others(const nlohmann::json& file) {
  const SgdOptions nesterov{
      .momentum = file.at("momentum"), .weight_decay = file.at("weight_decay"), .nesterov = true};
  AdamOptions adam{.beta1 = file.at("betas").at(0),
                   .beta2 = file.at("betas").at(1),
                   .epsilon = file.at("epsilon"),
                   .weight_decay = file.at("weight_decay")};
  AdamOptions adamw = adam;
  adamw.decoupled = true;
  const nlohmann::json& losses = file.at("losses_with");
  const float rate = file.at("adam_rate");
  return {{"nesterov", nesterov, file.at("learning_rate"), losses.at("nesterov")},
          {"adam", adam, rate, losses.at("adam")},
          {"adamw", adamw, rate, losses.at("adamw")}};
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
      .others = read_others(file),
      .losses = file.at("losses"),
      .gradients = file.at("gradients"),
      .running_after_first = file.at("running_after_first"),
      .running_after_last = file.at("running_after_last"),
      .evaluation_loss = file.at("evaluation").at("loss"),
      .evaluation_correct = file.at("evaluation").at("correct")};
  return golden;
}

std::vector<BlockNumbers> GoldenFile::initial_state(const Step& step) const {
  return drawn_state(step, std::to_string(salt), FirstValues::kCoarse);
}

Batch GoldenFile::make_batch(const nets::Network& network, std::uint64_t step) const {
  const std::string prefix = std::to_string(salt) + " ";
  const std::string number = std::to_string(step % batches);
  const auto images = draw(prefix + "images " + number, batch * network.input().elements());
  const auto labels = draw_labels(prefix + "labels " + number, batch, network.classes());
  return {.images{images.begin(), images.end()}, .labels{labels.begin(), labels.end()}};
}

}  // namespace spillway::test
