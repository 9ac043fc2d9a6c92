#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "src/ops/optimizers.h"
#include "src/ops/training_operations.h"

namespace spillway::test {

/// Returns all optimizers, with a weight decay. Those with state that needs a momentum come twice:
/// without it and with it.
[[nodiscard]] inline std::vector<OptimizerOptions> every_optimizer() {
  std::vector<OptimizerOptions> all;
  for (const Optimizer& optimizer : optimizers()) {
    std::visit(
        [&]<class Rule>(Rule rule) {
          rule.weight_decay = 0.1F;
          all.emplace_back(rule);
          if constexpr (kFixedStates<Rule> < Rule::kStates.size()) {
            rule.momentum = 0.5F;
            all.emplace_back(rule);
          }
        },
        optimizer.defaults);
  }
  return all;
}

/// Returns a name of one of every_optimizer(): "sgd_1", with the number of its state tensors.
[[nodiscard]] inline std::string printed(const OptimizerOptions& options) {
  return std::string{name_of(options)} + "_" + std::to_string(states_of(options).size());
}

/// Returns the operands of `update` in order, for blocks of the parameters, of each state tensor
/// and of the gradient. The new parameters go to `written`.
template <class Block>
[[nodiscard]] std::vector<Block> operands_of_update(const UpdateParameters& update,
                                                    const std::vector<Block>& blocks,
                                                    Block written) {
  std::vector<Block> operands{blocks.begin(), blocks.end() - 1};
  operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(update.gradient_place()),
                  blocks.back());
  operands.push_back(written);
  operands.insert(operands.end(), blocks.begin() + 1, blocks.end() - 1);
  return operands;
}

}  // namespace spillway::test
