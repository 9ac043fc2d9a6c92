#include "src/train/parts/state_tensors.h"

#include <functional>
#include <numeric>
#include <optional>
#include <span>

#include "src/io/file_digest.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr const char* kForeign = "it is no checkpoint of this network";

}  // namespace

std::vector<StoredTensor> tensors_of(std::span<const StateBlock> blocks) {
  std::vector<StoredTensor> tensors;
  for (const StateBlock& block : blocks) {
    for (const ParameterArray& array : arrays_of(block.spec)) {
      tensors.push_back({.name = block.name + array.suffix, .shape = array.shape});
    }
  }
  return tensors;
}

std::size_t element_count(const std::vector<std::size_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies{});
}

bool is_weight(StateRole role) {
  return role == StateRole::kParameters || role == StateRole::kStatistics;
}

std::vector<std::size_t> find_tensors(const SafetensorsReader& file,
                                      const std::filesystem::path& path,
                                      const std::vector<StoredTensor>& wanted) {
  std::vector<std::size_t> places;
  for (const auto& [name, shape] : wanted) {
    const std::optional<std::size_t> found = file.find(name);
    if (!found) throw um::Error{path.string() + " has no tensor '" + name + "'; " + kForeign};
    if (const auto& stored = file.tensors()[*found].shape; stored != shape) {
      throw um::Error{"tensor '" + name + "' of " + path.string() + " is " + shape_text(stored) +
                      ", but this network's is " + shape_text(shape) + "; " + kForeign};
    }
    places.push_back(*found);
  }
  return places;
}

std::vector<StoredTensor> weight_tensors(const Step& step) {
  std::vector<StateBlock> weights = step.state;
  std::erase_if(weights, [](const StateBlock& each) { return !is_weight(each.role); });
  return tensors_of(weights);
}

std::string weights_sha256(const std::filesystem::path& path, const Step& step) {
  const SafetensorsReader file{path};
  const std::vector<StoredTensor> wanted = weight_tensors(step);
  const std::vector<std::size_t> places = find_tensors(file, path, wanted);
  Sha256 hash;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::vector<float> numbers(element_count(wanted[i].shape));
    file.read(places[i], numbers);
    hash.update(std::as_bytes(std::span{numbers}));
  }
  return hash.hex();
}

}  // namespace spillway
