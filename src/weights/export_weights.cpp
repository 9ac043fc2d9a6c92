#include "src/weights/export_weights.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/weights/foreign_file.h"
#include "src/weights/tensor_places.h"
#include "um/error.h"

namespace spillway {
namespace {

// What the name of a block that an optimizer keeps adds to that of its parameters.
constexpr std::array<std::string_view, 3> kKeptByOptimizers{".momentum", ".exp_avg", ".exp_avg_sq"};

// "conv1.momentum.weight", beside "conv1.weight".
bool is_of_optimizer(const std::string& name, const SafetensorsReader& checkpoint) {
  const std::size_t suffix = name.rfind('.');
  if (suffix == std::string::npos) return false;
  const std::string block = name.substr(0, suffix);
  return std::ranges::any_of(kKeptByOptimizers, [&](std::string_view kept) {
    return block.ends_with(kept) &&
           checkpoint.find(block.substr(0, block.size() - kept.size()) + name.substr(suffix));
  });
}

std::vector<StoredTensor> weights_of(const SafetensorsReader& checkpoint) {
  std::vector<StoredTensor> weights = checkpoint.tensors();
  std::erase_if(weights, [&](const StoredTensor& tensor) {
    return is_of_optimizer(tensor.name, checkpoint);
  });
  return weights;
}

NamedTensors choose_names(std::span<const StoredTensor> arrays, const std::string& network,
                          WeightSource source) {
  const std::vector<NamedTensors> all = named_tensors(arrays);
  if (all.empty()) throw without_names(network);
  for (const NamedTensors& named : all) {
    if (named.table.source != source) continue;
    if (named.table.obstacle.empty()) return named;
    throw other_network_there(network, named.table);
  }
  throw um::Error{"network " + network + " has no names of " + to_string(source) +
                  "'s; it has those of " + title(all.front().table)};
}

}  // namespace

ExportedWeights export_weights(const SafetensorsReader& checkpoint, const std::string& network,
                               WeightSource source, const std::filesystem::path& file) {
  const std::vector<StoredTensor> arrays = weights_of(checkpoint);
  const NamedTensors named = choose_names(arrays, network, source);
  std::vector<StoredTensor> tensors;
  for (const TensorPlace& place : named.places) {
    tensors.push_back({.name = place.name, .shape = place.shape});
  }
  SafetensorsWriter writer{file, tensors, {{"format", "pt"}}};  // or transformers refuse it
  std::vector<float> array;
  for (const TensorPlace& place : named.places) {
    if (place.begin == 0) {  // the first of the array
      const std::size_t index = checkpoint.find(arrays[place.array].name).value();
      array.resize(element_count(arrays[place.array].shape));
      checkpoint.read(index, array);
    }
    const std::span<const float> part =
        std::span{array}.subspan(place.begin, element_count(place.shape));
    if (place.is_transposed) {
      std::vector<float> turned(part.size());
      transpose(part, place.shape[0], turned);
      writer.append(turned);
    } else {
      writer.append(part);
    }
  }
  writer.commit();
  return {.title = title(named.table), .tensors = tensors.size()};
}

}  // namespace spillway
