#include "src/onnx/operator_attributes.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <utility>
#include <variant>
#include <vector>

#include "nets/limits.h"
#include "src/onnx/layer_operators.h"
#include "src/onnx/node_error.h"

namespace spillway {
namespace {

using Integers = std::vector<std::int64_t>;

Integers integers_of(const nets::Extent& extent, AttributeForm form) {
  const auto height = static_cast<std::int64_t>(extent.height);
  const auto width = static_cast<std::int64_t>(extent.width);
  if (form == AttributeForm::kBothSides) return {height, width, height, width};
  return {height, width};
}

OnnxAttribute attribute_of(const nets::Extent& extent, AttributeForm form) {
  return integers_of(extent, form);
}
OnnxAttribute attribute_of(std::size_t number, AttributeForm /*plain*/) {
  return static_cast<std::int64_t>(number);
}
OnnxAttribute attribute_of(bool yes, AttributeForm /*plain*/) { return std::int64_t{yes ? 1 : 0}; }
OnnxAttribute attribute_of(float number, AttributeForm form) {
  return form == AttributeForm::kComplement ? 1 - number : number;
}

// What an attribute says, for the hyper-parameter `member`. Returns whether it can be that.
bool take(const OnnxAttribute& value, AttributeForm form, nets::Extent& member) {
  const auto* const sides = std::get_if<Integers>(&value);
  const bool is_known = sides != nullptr && std::ranges::all_of(*sides, [](std::int64_t side) {
                          return side >= 0 && side <= std::int64_t{nets::kLargestSide};
                        });
  if (!is_known || sides->size() < 2) return false;
  member = {.height = static_cast<std::size_t>((*sides)[0]),
            .width = static_cast<std::size_t>((*sides)[1])};
  return *sides == integers_of(member, form);
}
bool take(const OnnxAttribute& value, AttributeForm /*plain*/, std::size_t& member) {
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < 1 || *number > std::int64_t{nets::kLargestWidth}) return false;
  member = static_cast<std::size_t>(*number);
  return true;
}
bool take(const OnnxAttribute& value, AttributeForm /*plain*/, bool& member) {
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || (*number != 0 && *number != 1)) return false;
  member = *number == 1;
  return true;
}
bool take(const OnnxAttribute& value, AttributeForm form, float& member) {
  const auto* const number = std::get_if<float>(&value);
  if (number == nullptr || !std::isfinite(*number)) return false;
  member = *number;
  if (form == AttributeForm::kComplement) {  // of 0.9, 0.1 and not 0.10000002
    constexpr double kDigits = 1e6;
    member = static_cast<float>(std::round((1.0 - double{*number}) * kDigits) / kDigits);
  }
  return true;
}

bool has_value(const OnnxAttribute& value, std::int64_t wanted) {
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return *number == wanted;
  if (const auto* const number = std::get_if<float>(&value)) {
    return *number == static_cast<float>(wanted);
  }
  const auto* const list = std::get_if<Integers>(&value);
  return list != nullptr &&
         std::ranges::all_of(*list, [&](std::int64_t each) { return each == wanted; });
}

// One attribute after the other, for the layer that they make together.
template <typename L>
class AttributeReading {
 public:
  AttributeReading(L& layer, const std::string& word, const OnnxAttribute& value)
      : layer_{layer}, word_{word}, value_{value} {}

  template <typename T>
  bool operator()(const BoundAttribute<L, T>& attribute) {
    return attribute.word == word_ && take(value_, attribute.form, layer_.*attribute.member);
  }
  bool operator()(const FixedAttribute& attribute) {
    return attribute.word == word_ && has_value(value_, attribute.value);
  }

 private:
  L& layer_;
  const std::string& word_;
  const OnnxAttribute& value_;
};

template <typename Operator>
nets::Layer layer_by(const Operator& entry, const OnnxNode& node) {
  auto layer = entry.start;
  for (const auto& [word, value] : node.attributes) {
    AttributeReading reading{layer, word, value};
    const bool is_taken = std::apply(
        [&](const auto&... attribute) { return (reading(attribute) || ...); }, entry.attributes);
    if (!is_taken) throw attribute_error(node, word);
  }
  return layer;
}

template <typename L, typename T>
void write(const L& layer, const BoundAttribute<L, T>& attribute, OnnxAttributes& attributes) {
  attributes[std::string{attribute.word}] = attribute_of(layer.*attribute.member, attribute.form);
}
template <typename L>
void write(const L& /*layer*/, const FixedAttribute& attribute, OnnxAttributes& attributes) {
  if (attribute.is_written) attributes[std::string{attribute.word}] = attribute.value;
}

// Max pools and average pools are one layer.
template <typename L>
bool is_of_kind(const L& /*layer*/, const L& /*start*/) {
  return true;
}
bool is_of_kind(const nets::Pool& layer, const nets::Pool& start) {
  return layer.kind == start.kind;
}

template <typename L, typename Operator>
std::optional<OnnxOperator> operator_by(const Operator& entry, const L& layer) {
  if constexpr (std::same_as<typename Operator::Type, L>) {
    if (!is_of_kind(layer, entry.start)) return {};
    OnnxOperator found{.type = std::string{entry.type}, .attributes = {}};
    std::apply([&](const auto&... attribute) { (write(layer, attribute, found.attributes), ...); },
               entry.attributes);
    return found;
  } else {
    return {};
  }
}

}  // namespace

std::optional<OnnxOperator> operator_of(const nets::Layer& layer) {
  std::optional<OnnxOperator> found;
  const auto try_entry = [&](const auto& own, const auto& entry) {
    if (!found) found = operator_by(entry, own);
  };
  std::visit(
      [&](const auto& own) {
        std::apply([&](const auto&... entry) { (try_entry(own, entry), ...); }, kLayerOperators);
      },
      layer);
  return found;
}

std::optional<nets::Layer> layer_of(const OnnxNode& node) {
  std::optional<nets::Layer> found;
  const auto read = [&](const auto& entry) {
    if (entry.type == node.type) found = layer_by(entry, node);
  };
  std::apply([&](const auto&... entry) { (read(entry), ...); }, kLayerOperators);
  return found;
}

}  // namespace spillway
