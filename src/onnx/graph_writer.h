#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "src/onnx/onnx_model.h"
#include "um/text/free_names.h"

namespace spillway {

/// Fills `numbers` with those of the array `name` of a network: "conv1.weight", "bn1.running_mean".
using ArraySource = std::function<void(const std::string& name, std::span<float> numbers)>;

/// Appends operators and constants to a model. Values and constants are known by name; where one is
/// taken, such as by a layer `fc.flatten` beside `fc`, whose part is called so, a number is added.
class GraphWriter {
 public:
  /// Both must outlive it.
  GraphWriter(OnnxModel& model, const ArraySource& arrays) : model_{model}, arrays_{arrays} {}

  /// The operator `type` that reads `inputs`. Returns the value that it makes.
  std::string add(const std::string& type, const std::string& name, std::vector<std::string> inputs,
                  OnnxAttributes attributes = {});
  /// The same for one that makes as many values as there are in `outputs`, names for them.
  std::vector<std::string> add_several(const std::string& type, const std::string& name,
                                       std::vector<std::string> inputs,
                                       std::vector<std::string> outputs, OnnxAttributes attributes);

  /// The array `name` of the network. Returns its name; one that was there before is not added
  /// again. Throws: um::Error where something else is called so.
  std::string array(const std::string& name, std::vector<std::size_t> shape);
  /// A constant of floats. Returns its name; an equal one that was there is not added again.
  std::string floats(const std::string& name, std::vector<std::size_t> shape,
                     std::vector<float> numbers);
  /// A list of whole numbers, such as a shape. Likewise.
  std::string integers(const std::string& name, std::vector<std::int64_t> numbers);

 private:
  std::string constant(OnnxTensor tensor);

  OnnxModel& model_;
  const ArraySource& arrays_;
  um::FreeNames nodes_;
  um::FreeNames names_;                                        // of values, arrays and constants
  std::set<std::string> known_arrays_;                         // of the network
  std::map<std::string, std::vector<std::size_t>> constants_;  // numbers of tensors, by wanted name
};

}  // namespace spillway
