#include "src/gradients.h"

#include <algorithm>

#include "um/error.h"

namespace spillway {

using prefetch::DataId;
using prefetch::Phase;

Gradients::Gradients(StepBuilder& builder)
    : builder_{builder}, contributions_(builder.network().nodes.size()) {}

void Gradients::contribute(nets::NodeId node, DataId block) {
  if (!builder_.value(node).needs_gradient) return;
  contributions_[static_cast<std::size_t>(node)].push_back(block);
  ++holders_[static_cast<std::uint32_t>(block)];
}

std::optional<DataId> Gradients::take_partial_sum(nets::NodeId node) {
  std::vector<DataId>& parts = contributions_[static_cast<std::size_t>(node)];
  const auto own = std::find_if(parts.begin(), parts.end(), [this](DataId part) {
    return holders_.at(static_cast<std::uint32_t>(part)) == 1;
  });
  if (own == parts.end()) return std::nullopt;
  const DataId block = *own;
  parts.erase(own);
  static_cast<void>(release(block));
  return block;
}

Gradient Gradients::release(DataId block) {
  int& holders = holders_[static_cast<std::uint32_t>(block)];
  return {.block = block, .may_overwrite = --holders == 0};
}

Gradient Gradients::take(nets::NodeId node, const DataId* relu_output) {
  std::vector<DataId>& parts = contributions_[static_cast<std::size_t>(node)];
  um::expects(!parts.empty(), "every value that is taken has a reader");
  const TensorShape& shape = builder_.value(node).shape;
  const std::string name = builder_.network()[node].name + ".gradient";
  Gradient sum = release(parts[0]);
  if (parts.size() == 1 && relu_output != nullptr) {
    return relu_backward(sum, shape, name, *relu_output);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    const std::string suffix = i == 1 ? "" : std::to_string(i);
    sum = add(sum, release(parts[i]), shape, name + suffix, is_last ? relu_output : nullptr);
  }
  return sum;
}

Gradient Gradients::add(const Gradient& a, const Gradient& b, const TensorShape& shape,
                        const std::string& name, const DataId* relu_output) {
  const Gradient& first = a.may_overwrite ? a : b;
  const Gradient& second = a.may_overwrite ? b : a;
  const DataId sum = first.may_overwrite ? first.block : builder_.new_tensor(name, shape);
  StepBuilder::Operands operands{.reads = {first.block, second.block}, .writes = {sum}};
  if (relu_output != nullptr) operands.reads.push_back(*relu_output);
  builder_.emit(name, Phase::kBackward, AddGradients{.x = shape, .relu = relu_output != nullptr},
                std::move(operands));
  return {.block = sum, .may_overwrite = true};
}

Gradient Gradients::relu_backward(const Gradient& gradient, const TensorShape& shape,
                                  const std::string& name, DataId relu_output) {
  const DataId dx = gradient.may_overwrite ? gradient.block : builder_.new_tensor(name, shape);
  builder_.emit(name, Phase::kBackward, ReluBackward{.x = shape},
                {.reads = {relu_output, gradient.block}, .writes = {dx}});
  return {.block = dx, .may_overwrite = true};
}

}  // namespace spillway
