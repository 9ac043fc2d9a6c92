#include "src/program/gradients.h"

#include <algorithm>
#include <utility>

#include "src/program/step_builder.h"
#include "um/error.h"

namespace spillway {

using prefetch::DataId;
using prefetch::Phase;

Gradients::Gradients(StepBuilder& builder)
    : builder_{builder},
      missing_{count_readers(builder.network())},
      names_(missing_.size()),
      contributions_(missing_.size()) {}

void Gradients::contribute(nets::NodeId node, DataId block) {
  if (!builder_.value(node).needs_gradient) return;
  const auto index = static_cast<std::size_t>(node);
  add_part(node, block);
  --missing_[index];
  if (missing_[index] > 0 && contributions_[index].size() == 2) {
    add_part(node, sum_of_both(node, nullptr).block);
  }
}

void Gradients::add_part(nets::NodeId node, DataId block) {
  contributions_[static_cast<std::size_t>(node)].push_back(block);
  ++holders_[static_cast<std::uint32_t>(block)];
}

std::optional<DataId> Gradients::take_partial_sum(nets::NodeId node) {
  std::vector<DataId>& parts = contributions_[static_cast<std::size_t>(node)];
  const auto own = std::find_if(parts.begin(), parts.end(),
                                [this](DataId part) { return has_one_holder(part); });
  if (own == parts.end()) return std::nullopt;
  const DataId block = *own;
  parts.erase(own);
  static_cast<void>(release(block));
  return block;
}

bool Gradients::has_one_holder(DataId block) const {
  return holders_.at(static_cast<std::uint32_t>(block)) == 1;
}

Gradient Gradients::release(DataId block) {
  int& holders = holders_[static_cast<std::uint32_t>(block)];
  return {.block = block, .may_overwrite = --holders == 0};
}

std::array<DataId, 2> Gradients::take_twice(nets::NodeId node,
                                            const std::optional<ReluOutput>& relu_output) {
  std::vector<DataId>& parts = contributions_[static_cast<std::size_t>(node)];
  const bool are_own = parts.size() == 2 && parts[0] != parts[1] && has_one_holder(parts[0]) &&
                       has_one_holder(parts[1]);
  if (!are_own) {
    const DataId shared = take(node, relu_output ? &*relu_output : nullptr).block;
    return {shared, shared};
  }
  const std::vector<DataId> both = std::exchange(parts, {});
  for (const DataId part : both) static_cast<void>(release(part));
  builder_.emit(next_name(node), Phase::kBackward,
                AddGradients{.x = builder_.value(node).shape,
                             .relu = relu_output.has_value(),
                             .by_mask = relu_output && relu_output->is_mask,
                             .twice = true},
                {.a = both[0], .b = both[1], .y = relu_output.value_or(ReluOutput{}).block},
                {.d = both[0], .copy = both[1]});
  return {both[0], both[1]};
}

Gradient Gradients::take(nets::NodeId node, const ReluOutput* relu_output) {
  const std::vector<DataId>& parts = contributions_[static_cast<std::size_t>(node)];
  um::expects(parts.size() == 1 || parts.size() == 2, "every value that is taken has a reader");
  if (parts.size() == 2) return sum_of_both(node, relu_output);
  const Gradient whole = release(parts[0]);
  if (relu_output == nullptr) return whole;
  return relu_backward(whole, builder_.value(node).shape, next_name(node), *relu_output);
}

Gradient Gradients::sum_of_both(nets::NodeId node, const ReluOutput* relu_output) {
  const auto index = static_cast<std::size_t>(node);
  const std::vector<DataId> parts = std::exchange(contributions_[index], {});
  const Gradient first = release(parts[0]);
  const Gradient second = release(parts[1]);
  return add(first, second, builder_.value(node).shape, next_name(node), relu_output);
}

std::string Gradients::next_name(nets::NodeId node) {
  const std::size_t number = ++names_[static_cast<std::size_t>(node)];
  return builder_.network()[node].name + ".gradient" + (number == 1 ? "" : std::to_string(number));
}

Gradient Gradients::add(const Gradient& a, const Gradient& b, const TensorShape& shape,
                        const std::string& name, const ReluOutput* relu_output) {
  const Gradient& first = a.may_overwrite ? a : b;
  const Gradient& second = a.may_overwrite ? b : a;
  const DataId sum = first.may_overwrite ? first.block : builder_.new_tensor(name, shape);
  const ReluOutput relu = relu_output == nullptr ? ReluOutput{} : *relu_output;
  builder_.emit(name, Phase::kBackward,
                AddGradients{.x = shape, .relu = relu_output != nullptr, .by_mask = relu.is_mask},
                {.a = first.block, .b = second.block, .y = relu.block}, {.d = sum});
  return {.block = sum, .may_overwrite = true};
}

Gradient Gradients::relu_backward(const Gradient& gradient, const TensorShape& shape,
                                  const std::string& name, const ReluOutput& relu_output) {
  const DataId dx = gradient.may_overwrite ? gradient.block : builder_.new_tensor(name, shape);
  builder_.emit(name, Phase::kBackward, ReluBackward{.x = shape, .by_mask = relu_output.is_mask},
                {.y = relu_output.block, .dy = gradient.block}, {.dx = dx});
  return {.block = dx, .may_overwrite = true};
}

}  // namespace spillway
