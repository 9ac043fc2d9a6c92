#include "src/onnx/value_forms.h"

#include <algorithm>
#include <cstddef>

namespace spillway {
namespace {

constexpr std::int64_t kOneAxisSoftmax = 13;  // since this version, with the last as its default

bool is_side(std::int64_t side, std::size_t own) {
  return side == -1 || (side > 0 && static_cast<std::size_t>(side) == own);
}

}  // namespace

std::optional<ValueForm> reshaped_form(const GraphReader& graph, const OnnxNode& node,
                                       const nets::Shape& shape) {
  const auto target = has_input(node, 1) ? graph.integers(node.inputs[1]) : std::nullopt;
  if (!target || target->empty() || std::ranges::count(*target, -1) > 1) return {};
  const std::int64_t first = target->front();
  const bool keeps_zeros = integer_attribute(node, "allowzero", 0) != 0;  // 0: none, not as before
  const auto batch = static_cast<std::int64_t>(graph.input().shape.front().value_or(0));
  const bool keeps_batch =
      first == -1 || (first == 0 && !keeps_zeros) || (first == batch && batch > 0);
  if (!keeps_batch) return {};
  if (target->size() == 2 && is_side(target->at(1), shape.elements())) return ValueForm::kVector;
  const bool is_image = target->size() == 4 && is_side(target->at(1), shape.channels) &&
                        is_side(target->at(2), shape.height) && is_side(target->at(3), shape.width);
  return is_image ? std::optional{ValueForm::kImage} : std::nullopt;
}

bool are_height_and_width(std::vector<std::int64_t> axes) {
  for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::ranges::sort(axes);
  return axes == std::vector<std::int64_t>{2, 3};
}

bool is_over_channels(const OnnxNode& node, std::int64_t operators, ValueForm form,
                      const nets::Shape& shape) {
  const bool is_one_axis = operators >= kOneAxisSoftmax;
  const std::int64_t dimensions = form == ValueForm::kVector ? 2 : 4;
  const std::int64_t axis = integer_attribute(node, "axis", is_one_axis ? -1 : 1);
  if (axis != 1 && axis + dimensions != 1) return false;
  return is_one_axis || form == ValueForm::kVector || shape.height * shape.width == 1;
}

}  // namespace spillway
