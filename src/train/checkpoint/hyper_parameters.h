#pragma once

#include <optional>
#include <string_view>

#include "src/train/checkpoint/settings.h"

namespace spillway {

/// A hyper-parameter that rules of src/ops/optimizers.h may have, as users see it.
template <class Number>
struct HyperParameter {
  std::string_view name;  ///< in files; with dashes, the flag's
  std::string_view help;
  SettingRange<Number> range = {};
};

/// Calls `visit` with each HyperParameter of the first of `options`, and the member of that name of
/// each. Help texts list them in this order.
template <class Visit, class... Options>
void for_each_hyper_parameter(const Visit& visit, Options&... options) {
  if constexpr (requires { (options.momentum, ...); }) {
    visit(HyperParameter<float>{"momentum", "momentum coefficient", kMomentumRange},
          options.momentum...);
  }
  if constexpr (requires { (options.nesterov, ...); }) {
    visit(HyperParameter<bool>{"nesterov", "Nesterov momentum"}, options.nesterov...);
  }
  if constexpr (requires { (options.beta1, ...); }) {
    visit(HyperParameter<double>{"beta1", "decay rate of the first moment; lion: of the direction",
                                 kBetaRange},
          options.beta1...);
  }
  if constexpr (requires { (options.beta2, ...); }) {
    visit(HyperParameter<double>{"beta2", "decay rate of the second moment; lion: of the first",
                                 kBetaRange},
          options.beta2...);
  }
  if constexpr (requires { (options.alpha, ...); }) {
    visit(HyperParameter<double>{"alpha", "decay rate of the mean of squares", kBetaRange},
          options.alpha...);
  }
  if constexpr (requires { (options.epsilon, ...); }) {
    visit(HyperParameter<float>{"epsilon", "term added to the denominator for numerical stability",
                                kEpsilonRange},
          options.epsilon...);
  }
  visit(
      HyperParameter<float>{
          "weight_decay",
          "Weight decay: an L2 penalty, or decoupled decay with adamw and lion. It "
          "applies to weights and embeddings, not to biases, norms and class "
          "tokens",
          kWeightDecayRange},
      options.weight_decay...);
}

/// The hyper-parameters that a user gives.
struct GivenHyperParameters {
  std::optional<float> momentum;
  std::optional<bool> nesterov;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> alpha;
  std::optional<float> epsilon;
  std::optional<float> weight_decay;
};

}  // namespace spillway
