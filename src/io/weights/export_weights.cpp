#include "src/io/weights/export_weights.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/io/weights/model_files.h"
#include "src/io/weights/tensor_places.h"
#include "um/error.h"

namespace spillway {
namespace {

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

// Returns the array `name`, or its average if that is wanted and exists.
std::size_t find_array(const SafetensorsReader& checkpoint, const std::string& name,
                       ExportedState state) {
  std::optional<std::size_t> found;
  if (state == ExportedState::kAverages) found = checkpoint.find(average_of(name));
  if (!found) found = checkpoint.find(name);
  return found.value();
}

}  // namespace

ExportedWeights export_weights(const SafetensorsReader& checkpoint, const std::string& network,
                               const ExportOptions& options, const std::filesystem::path& file) {
  std::vector<StoredTensor> arrays = checkpoint.tensors();
  std::erase_if(
      arrays, [&](const StoredTensor& tensor) { return is_kept_beside(tensor.name, checkpoint); });
  const NamedTensors named = choose_names(arrays, network, options.source);
  std::vector<StoredTensor> tensors;
  for (const TensorPlace& place : named.places) {
    tensors.push_back({.name = place.name, .shape = place.shape});
  }
  SafetensorsWriter writer{file, tensors, {{"format", "pt"}}};  // transformers need it
  std::vector<float> array;
  for (const TensorPlace& place : named.places) {
    if (place.begin == 0) {  // the first part of the array
      const std::size_t index = find_array(checkpoint, arrays[place.array].name, options.state);
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
