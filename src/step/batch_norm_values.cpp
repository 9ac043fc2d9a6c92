#include "src/step/batch_norm_values.h"

#include <variant>

#include "um/error.h"

namespace spillway {

std::optional<std::string> norm_of_one_value(const nets::Network& network, std::size_t samples) {
  for (const nets::Node& node : network.nodes) {
    if (node.inputs.empty() || !std::holds_alternative<nets::BatchNorm>(node.layer)) continue;
    const nets::Shape& x = network[node.inputs[0]].output;
    if (samples * x.height * x.width == 1) return node.name;
  }
  return std::nullopt;
}

std::optional<std::string> last_norm_of_one_value(const nets::Network& network, std::size_t batch,
                                                  const prefetch::SubBatches& batches) {
  if (norm_of_one_value(network, batches.size)) return std::nullopt;
  return norm_of_one_value(network, batch - (batches.steps - 1) * batches.size);
}

void expect_values_to_normalize(const nets::Network& network, std::size_t batch,
                                const prefetch::SubBatches& batches) {
  const std::optional<std::string> layer = norm_of_one_value(network, batches.size);
  if (!layer) return;
  throw um::Error{
      "layer " + *layer +
      " (batch-norm) gets one value per channel and would make zeros of it; train with a larger " +
      (batch == 1 ? "batch" : "sub-batch") + " or larger images"};
}

}  // namespace spillway
