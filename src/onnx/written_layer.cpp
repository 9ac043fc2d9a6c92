#include "src/onnx/written_layer.h"

#include <cstdint>

namespace spillway {
namespace {

// Of the second input and those behind it: "", "2", "3".
std::string ordinal(std::size_t input) { return input == 0 ? "" : std::to_string(input + 1); }

}  // namespace

std::string WrittenLayer::flat(std::size_t input) const {
  if (inputs_[input].is_flat) return read(input);
  return add("Flatten", "flatten" + ordinal(input), {read(input)}, {{"axis", std::int64_t{1}}});
}

std::string WrittenLayer::image(std::size_t input) const {
  if (!inputs_[input].is_flat) return read(input);
  const std::string name = "image" + ordinal(input);
  const auto channels = static_cast<std::int64_t>(inputs_[input].shape.channels);
  const std::string shape = integers(name + ".shape", {0, channels, 1, 1});  // 0: the batch
  return add("Reshape", name, {read(input), shape});
}

}  // namespace spillway
