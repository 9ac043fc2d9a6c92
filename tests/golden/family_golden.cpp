#include "tests/golden/family_golden.h"

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/host/host_backend.h"
#include "src/train/session.h"
#include "tests/golden/drawn_numbers.h"
#include "tests/src/network_in_memory.h"
#include "tools/golden/family_networks.h"
#include "um/host/host_device.h"

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

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += std::pow(static_cast<double>(value), 2);
  return std::sqrt(sum);
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

FamilyTraining::FamilyTraining(const FamilyGolden& golden, const SgdOptions& optimizer,
                               Precision precision)
    : golden_{golden},
      net_{host::open_context(std::make_unique<um::HostDevice>(), host::usable_cpus(), false,
                              precision),
           golden::family_network(golden.name),
           {.batch = golden.batch,
            .convolution = ConvolutionAlgorithm::kDirect,
            .optimizer = optimizer},
           MemoryMode::kResident} {
  set_numbers(net_.session().state(), net_.training_step(),
              drawn_state(net_.training_step(), golden.prefix, FirstValues::kGentle));
}

double FamilyTraining::train(std::uint64_t step) {
  const Batch batch = golden_.make_batch(net_.network(), step);
  const StepReport report = net_.session().train({.seed = golden_.seed,
                                                  .step = step,
                                                  .learning_rate = golden_.learning_rate,
                                                  .batch = &batch});
  return static_cast<double>(report.loss);
}

std::map<std::string, double> FamilyTraining::momentum_norms() {
  std::map<std::string, double> norms;
  for (const BlockNumbers& block : numbers_of(net_.session().state(), net_.training_step())) {
    if (!block.name.ends_with(".momentum")) continue;
    norms[block.name.substr(0, block.name.rfind('.'))] = norm(block.values);
  }
  return norms;
}

}  // namespace spillway::test
