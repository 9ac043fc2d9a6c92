#include "src/program/combinations.h"

#include <variant>

#include "um/error.h"

namespace spillway {

void expect_combinable(const Features& features) {
  if (features.division.is_whole() || features.state != StatePlace::kUpdatedFar) return;
  throw um::Error{
      "with --zero each rank updates a slice of the weights, which ranks gather in near memory; "
      "leave out --update far, or --zero"};
}

void refuse_far_updates() {
  throw um::Error{
      "no weights of this network are large enough to be updated on the far side; leave out "
      "--update far"};
}

void expect_work_for(std::size_t ranks, const MicroBatches& all) {
  if (all.count() >= ranks) return;
  const std::string cut =
      all.count() == 1 ? "" : " in " + std::to_string(all.count()) + " micro-batches";
  throw um::Error{"a batch" + cut + " leaves some of " + std::to_string(ranks) +
                  " ranks without work; start fewer ranks, or give more --micro-batches, which "
                  "--resume takes from the checkpoint"};
}

void expect_equal(const prefetch::BatchCut& batches, std::size_t samples) {
  if (samples % batches.size == 0) return;
  throw um::Error{"ranks train equal micro-batches, and " + std::to_string(batches.size) +
                  " does not divide a batch of " + std::to_string(samples) +
                  "; give a --micro-batch-size that does"};
}

void expect_mixable(const nets::Network& network, std::size_t batch) {
  if (network.reads_text()) {
    throw um::Error{"mixup and CutMix are of images, but the network reads text; leave them out"};
  }
  if (network.labels() != nets::square(1)) {
    throw um::Error{
        "mixup and CutMix mix labels of images, but the network labels each pixel; leave them out"};
  }
  if (batch == 1) {
    throw um::Error{
        "mixup and CutMix mix images of a batch, but it has one alone; use a larger --batch, or "
        "leave them out"};
  }
}

std::optional<std::string> norm_of_one_value(const nets::Network& network, std::size_t samples) {
  for (const nets::Node& node : network.nodes) {
    if (node.inputs.empty() || !std::holds_alternative<nets::BatchNorm>(node.layer)) continue;
    const nets::Shape& x = network[node.inputs[0]].output;
    if (samples * x.height * x.width == 1) return node.name;
  }
  return std::nullopt;
}

std::optional<std::string> last_norm_of_one_value(const nets::Network& network,
                                                  const MicroBatches& batches) {
  if (norm_of_one_value(network, batches.size)) return std::nullopt;
  return norm_of_one_value(network, batches.batch - (batches.count() - 1) * batches.size);
}

void expect_values_to_normalize(const nets::Network& network, const MicroBatches& batches) {
  const std::optional<std::string> layer = norm_of_one_value(network, batches.size);
  if (!layer) return;
  throw um::Error{
      "layer " + *layer +
      " (batch-norm) gets one value per channel and would make zeros of it; train with a larger " +
      (batches.batch == 1 ? "batch" : "micro-batch") + " or larger images"};
}

}  // namespace spillway
