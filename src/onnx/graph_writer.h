#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/onnx/onnx_model.h"

namespace spillway {

/// Fills `numbers` with those of the array `name` of a network: "conv1.weight", "bn1.running_mean".
using ArraySource = std::function<void(const std::string& name, std::span<float> numbers)>;

/// Appends operators and constants to a model. Values and constants are known by name.
class GraphWriter {
 public:
  /// Both must outlive it.
  GraphWriter(OnnxModel& model, const ArraySource& arrays) : model_{model}, arrays_{arrays} {}

  /// The operator `type` that reads `inputs`. Returns the value that it makes.
  std::string add(const std::string& type, const std::string& name, std::vector<std::string> inputs,
                  OnnxAttributes attributes = {});
  /// The same for one that makes as many values as there are in `outputs`.
  void add_several(const std::string& type, const std::string& name,
                   std::vector<std::string> inputs, std::vector<std::string> outputs,
                   OnnxAttributes attributes);

  /// The array `name` of the network. Returns its name; what was there before is not added again.
  std::string array(const std::string& name, std::vector<std::size_t> shape);
  /// A constant of floats. Likewise.
  std::string floats(const std::string& name, std::vector<std::size_t> shape,
                     std::vector<float> numbers);
  /// A list of whole numbers, such as a shape. Likewise.
  std::string integers(const std::string& name, std::vector<std::int64_t> numbers);

 private:
  [[nodiscard]] bool is_new(const std::string& name) { return names_.insert(name).second; }

  OnnxModel& model_;
  const ArraySource& arrays_;
  std::set<std::string> names_;  // of constants
};

}  // namespace spillway
