#pragma once

#include <cudnn.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/src/cuda/emulated_gpu/cudnn_operations.h"

namespace spillway::emulated {

struct Knob {
  cudnnBackendKnobType_t type;
  std::int64_t value;
};

// An engine with its settings, as the heuristics list it.
struct Engine {
  std::int64_t number;
  std::vector<Knob> knobs;
  std::int64_t workspace;
  std::vector<cudnnBackendNumericalNote_t> numerics = {};
  std::vector<cudnnBackendBehaviorNote_t> behaviour = {};
  std::int64_t more_for_plan = 0;  // workspace of the plan beyond what the configuration states
  bool has_plan = true;            // otherwise the heuristics list what cannot run
};

struct Descriptor;
using Reference = std::shared_ptr<const Descriptor>;

struct Attribute {
  std::vector<char> bytes;
  std::vector<Reference> references;  // instead of bytes, if the values are descriptors
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  bool is_destroyed = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes = {};
  // Meaning of the attributes once they are final, by type.
  CudnnTensor tensor = {};
  std::optional<CudnnOperation> operation = {};
  std::shared_ptr<const OperationGraph> graph = {};  // also of engines, configurations and plans
  const Engine* engine = nullptr;                    // of the same types
  const char* kind = "";                             // of engine
  Knob knob = {};
  std::vector<Reference> results = {};  // of heuristics
};

enum class Use { kRequired, kOptional, kResult };

// An attribute of a type of descriptors. Callers set it, unless it is a result.
struct AttributeRule {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t most = 1;  // values
  std::int64_t least = 1;
  Use use = Use::kRequired;
};

using AttributeRules = std::vector<AttributeRule>;

// The values of an attribute that was set, or none.
template <class T>
std::vector<T> values_of(const Descriptor& descriptor, cudnnBackendAttributeName_t name) {
  const auto found = descriptor.attributes.find(name);
  if (found == descriptor.attributes.end()) return {};
  std::vector<T> values(found->second.bytes.size() / sizeof(T));
  std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
T value_of(const Descriptor& descriptor, cudnnBackendAttributeName_t name, T otherwise = {}) {
  const auto found = descriptor.attributes.find(name);
  if (found == descriptor.attributes.end()) return otherwise;
  std::memcpy(&otherwise, found->second.bytes.data(), sizeof(T));
  return otherwise;
}

// Each throws CallerMistake or NotSupported, as the real library refuses.

[[nodiscard]] std::string text_of(cudnnBackendDescriptorType_t type);
/// Returns the attributes of descriptors of a type. Throws: NotSupported if there are none.
[[nodiscard]] const AttributeRules& rules_of(cudnnBackendDescriptorType_t type);
/// Returns the bytes of one value.
[[nodiscard]] std::size_t value_bytes(cudnnBackendAttributeType_t type);
/// Returns the rule for an attribute of a descriptor of this type.
[[nodiscard]] const AttributeRule& rule_for(const Descriptor& descriptor,
                                            cudnnBackendAttributeName_t name,
                                            cudnnBackendAttributeType_t type);
/// Returns the descriptor of that type to which an attribute refers.
[[nodiscard]] const Descriptor& reference(const Descriptor& descriptor,
                                          cudnnBackendAttributeName_t name,
                                          cudnnBackendDescriptorType_t type);
/// Requires that nothing to which the descriptor refers has been destroyed.
void require_alive(const Descriptor& descriptor);
/// Checks the attributes and works out what they mean.
void finalize(Descriptor& descriptor);

}  // namespace spillway::emulated
