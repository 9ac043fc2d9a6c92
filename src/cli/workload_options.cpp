#include "src/cli/workload_options.h"

#include <map>

#include "nets/catalogue.h"
#include "src/cli/number_checks.h"

namespace spillway::cli {
namespace {

constexpr const char* kWorkload = "What is trained";
constexpr std::size_t kLargestBatch = 1U << 20U;
constexpr std::size_t kLargestSide = 1U << 14U;

const std::map<std::string, ConvolutionAlgorithm> kAlgorithms{
    {"auto", ConvolutionAlgorithm::kAuto},
    {"direct", ConvolutionAlgorithm::kDirect},
    {"winograd", ConvolutionAlgorithm::kWinograd}};

}  // namespace

void WorkloadOptions::add_to(CLI::App& app) {
  app.add_option("--net", net, "Network; spillway nets lists them")->required()->group(kWorkload);
  app.add_option("--batch", batch, "Images a step")
      ->required()
      ->check(CLI::Range(std::size_t{1}, kLargestBatch))
      ->group(kWorkload);
  app.add_option("--image-size", image_size, "Side of the square images (default: the network's)")
      ->check(CLI::Range(std::size_t{1}, kLargestSide))
      ->group(kWorkload);
  app.add_option("--classes", classes, "Outputs of the network")
      ->check(CLI::Range(std::size_t{2}, kLargestBatch))
      ->capture_default_str()
      ->group(kWorkload);
  app.add_option("--conv-algorithm", convolution_algorithm,
                 "Convolution algorithms to choose from: auto, direct, winograd")
      ->check(CLI::IsMember{kAlgorithms})
      ->capture_default_str()
      ->group(kWorkload);
  app.add_option("--momentum", momentum, "Of stochastic gradient descent")
      ->check(check_amount)
      ->check(CLI::Range(0.F, 1.F))
      ->capture_default_str()
      ->group(kWorkload);
  app.add_option("--weight-decay", weight_decay, "Of all parameters")
      ->check(check_amount)
      ->capture_default_str()
      ->group(kWorkload);
}

nets::Network WorkloadOptions::network() const {
  nets::NetworkOptions options{.classes = classes};
  if (image_size > 0) {
    options.image = nets::Shape{.channels = nets::find_network(net).image.channels,
                                .height = image_size,
                                .width = image_size};
  }
  return nets::build_network(net, options);
}

StepOptions WorkloadOptions::step() const {
  return {.batch = batch,
          .convolution = kAlgorithms.at(convolution_algorithm),
          .sgd = {.momentum = momentum, .weight_decay = weight_decay}};
}

}  // namespace spillway::cli
