#pragma once

#include <variant>

namespace spillway {

/// How an update turns a gradient into a change of the parameters: PyTorch's definitions, but that
/// weight decay applies to the weights of layers alone, not to biases nor to norms' gamma and beta,
/// unless an optimizer `decays_all`.
/// With a `clip_norm`, all gradients together are first scaled down to that norm, where theirs is
/// larger: tasks of their own do that before the updates. Below, w are parameters, g their
/// gradients, and the learning rate is StepContext's.

/// Stochastic gradient descent: g += weight_decay w; v = momentum v + g; w -= rate v; or, with
/// `nesterov`, w -= rate (g + momentum v).
struct SgdOptions {
  float momentum = 0.9F;
  float weight_decay = 0;
  bool nesterov = false;
  float clip_norm = 0;      ///< 0: gradients stay as they are
  bool decays_all = false;  ///< parameters, as PyTorch does: biases and norms, too
  friend bool operator==(const SgdOptions&, const SgdOptions&) = default;
};

/// Adam (Kingma and Ba, 2015), in step t = 1, 2, ...: g += weight_decay w; m = beta1 m + (1 -
/// beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t))
/// + epsilon). AdamW (Loshchilov and Hutter, 2019) leaves g alone and begins with w -= rate
/// weight_decay w.
struct AdamOptions {
  double beta1 = 0.9;    ///< a double: 1 - 0.999F is 0.00099999
  double beta2 = 0.999;  ///< likewise
  float epsilon = 1e-8F;
  float weight_decay = 0;
  bool decoupled = false;   ///< AdamW
  float clip_norm = 0;      ///< as of SgdOptions
  bool decays_all = false;  ///< likewise
  friend bool operator==(const AdamOptions&, const AdamOptions&) = default;
};

/// RMSprop (Hinton, 2012) by PyTorch's rule: g += weight_decay w; s = alpha s + (1 - alpha) g^2; d
/// = g / (sqrt(s) + epsilon); w -= rate d, or with a momentum v = momentum v + d; w -= rate v.
struct RmspropOptions {
  double alpha = 0.99;
  float epsilon = 1e-8F;
  float momentum = 0;  ///< 0: there is no v
  float weight_decay = 0;
  float clip_norm = 0;      ///< as of SgdOptions
  bool decays_all = false;  ///< likewise
  friend bool operator==(const RmspropOptions&, const RmspropOptions&) = default;
};

using OptimizerOptions = std::variant<SgdOptions, AdamOptions, RmspropOptions>;

}  // namespace spillway
