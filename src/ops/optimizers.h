#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

namespace spillway {

struct StepContext;

/// The rules by which updates change parameters: PyTorch's, Lion by its paper. One thing differs.
/// Weight decay applies only to weights of layers, not to biases, gamma or beta, unless an
/// optimizer `decays_all`. With a `clip_norm`, all gradients together are first scaled down to at
/// most that norm, by separate tasks. Below, w are parameters, g gradients, and the learning rate
/// is StepContext's.
///
/// A rule is a struct of its hyper-parameters, which also has
/// - `kStates`: the tensors that it keeps beside each parameter block;
/// - `name()`, `flops()` of a parameter's update;
/// - `rates(context)`: the coefficients of a step, computed in doubles and rounded once, which
///   makes them the same for all backends. Called with the numbers of one parameter, they change
///   its state and return its new value. `Real` is a float that rounds each operation.
///
/// A rule is listed in OptimizerOptions and in optimizers(). Flags, files and kernels follow.

/// A tensor of optimizer state: a number for each parameter of a block, zero at first.
struct StateTensor {
  std::string_view name;        ///< in names of blocks: "exp_avg" of "conv1.exp_avg"
  bool needs_momentum = false;  ///< exists only with a momentum
};

struct SgdRates {
  float decay;
  float momentum;
  float rate;
  bool nesterov;

  template <class Real>
  [[nodiscard]] constexpr Real operator()(Real w, Real dw, bool decays,
                                          std::array<Real, 1>& state) const {
    const Real gradient = dw + Real{decays ? decay : 0.F} * w;
    const Real velocity = Real{momentum} * state[0] + gradient;
    state[0] = velocity;
    return w - Real{rate} * (nesterov ? gradient + Real{momentum} * velocity : velocity);
  }
};

/// Stochastic gradient descent: g += weight_decay w; v = momentum v + g; w -= rate v; or, with
/// `nesterov`, w -= rate (g + momentum v).
struct SgdOptions {
  float momentum = 0.9F;
  float weight_decay = 0;
  bool nesterov = false;
  float clip_norm = 0;      ///< 0: gradients are not clipped
  bool decays_all = false;  ///< decays biases and norms, too, as PyTorch does

  static constexpr std::array kStates{StateTensor{"momentum"}};
  [[nodiscard]] constexpr std::string_view name() const { return "sgd"; }
  [[nodiscard]] double flops() const { return nesterov ? 7 : 5; }
  [[nodiscard]] SgdRates rates(const StepContext& context) const;
  friend bool operator==(const SgdOptions&, const SgdOptions&) = default;
};

struct AdamRates {
  float decay;   ///< 0 if decoupled
  float shrink;  ///< 1 unless decoupled
  float new_first;
  float old_second;
  float new_second;
  float step_size;
  float root;
  float epsilon;

  template <class Real>
  [[nodiscard]] constexpr Real operator()(Real w, Real dw, bool decays,
                                          std::array<Real, 2>& state) const {
    using std::sqrt;
    const Real gradient = dw + Real{decays ? decay : 0.F} * w;
    const Real first = state[0] + Real{new_first} * (gradient - state[0]);
    const Real second = Real{old_second} * state[1] + Real{new_second} * gradient * gradient;
    const Real size = sqrt(second) / Real{root} + Real{epsilon};
    state = {first, second};
    return Real{decays ? shrink : 1.F} * w - Real{step_size} * (first / size);
  }
};

/// Adam (Kingma and Ba, 2015), in step t = 1, 2, ...: g += weight_decay w; m = beta1 m + (1 -
/// beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t))
/// + epsilon). AdamW (Loshchilov and Hutter, 2019) leaves g alone and begins with w -= rate
/// weight_decay w.
struct AdamOptions {
  double beta1 = 0.9;    ///< a double, because 1 - 0.999F is 0.00099999
  double beta2 = 0.999;  ///< a double for the same reason
  float epsilon = 1e-8F;
  float weight_decay = 0;
  bool decoupled = false;   ///< AdamW
  float clip_norm = 0;      ///< see SgdOptions
  bool decays_all = false;  ///< see SgdOptions

  static constexpr std::array kStates{StateTensor{"exp_avg"}, StateTensor{"exp_avg_sq"}};
  [[nodiscard]] constexpr std::string_view name() const { return decoupled ? "adamw" : "adam"; }
  [[nodiscard]] double flops() const { return 15; }
  [[nodiscard]] AdamRates rates(const StepContext& context) const;
  friend bool operator==(const AdamOptions&, const AdamOptions&) = default;
};

struct RmspropRates {
  float decay;
  float old_square;
  float new_square;
  float epsilon;
  float momentum;
  float rate;

  /// Without a momentum, `state` has one number.
  template <class Real, std::size_t kCount>
  [[nodiscard]] constexpr Real operator()(Real w, Real dw, bool decays,
                                          std::array<Real, kCount>& state) const {
    using std::sqrt;
    const Real gradient = dw + Real{decays ? decay : 0.F} * w;
    state[0] = Real{old_square} * state[0] + Real{new_square} * gradient * gradient;
    Real change = gradient / (sqrt(state[0]) + Real{epsilon});
    if constexpr (kCount > 1) {
      change = Real{momentum} * state[1] + change;
      state[1] = change;
    }
    return w - Real{rate} * change;
  }
};

/// RMSprop (Hinton, 2012) by PyTorch's rule: g += weight_decay w; s = alpha s + (1 - alpha) g^2; d
/// = g / (sqrt(s) + epsilon); w -= rate d, or with a momentum v = momentum v + d; w -= rate v.
struct RmspropOptions {
  double alpha = 0.99;
  float epsilon = 1e-8F;
  float momentum = 0;  ///< 0: without v
  float weight_decay = 0;
  float clip_norm = 0;      ///< see SgdOptions
  bool decays_all = false;  ///< see SgdOptions

  static constexpr std::array kStates{
      StateTensor{"square_avg"}, StateTensor{.name = "momentum_buffer", .needs_momentum = true}};
  [[nodiscard]] constexpr std::string_view name() const { return "rmsprop"; }
  [[nodiscard]] double flops() const { return 12; }
  [[nodiscard]] RmspropRates rates(const StepContext& context) const;
  friend bool operator==(const RmspropOptions&, const RmspropOptions&) = default;
};

struct LionRates {
  float shrink;
  float new_direction;
  float new_average;
  float rate;

  template <class Real>
  [[nodiscard]] constexpr Real operator()(Real w, Real dw, bool decays,
                                          std::array<Real, 1>& state) const {
    const Real zero{0.F};
    const Real mean = state[0] + Real{new_direction} * (dw - state[0]);
    // The sign; that of a NaN stays a NaN and shows.
    const Real direction = zero < mean ? Real{1.F} : mean < zero ? Real{-1.F} : mean;
    state[0] = state[0] + Real{new_average} * (dw - state[0]);
    return Real{decays ? shrink : 1.F} * w - Real{rate} * direction;
  }
};

/// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, Algorithm 2): w -=
/// rate (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g.
struct LionOptions {
  double beta1 = 0.9;   ///< see AdamOptions
  double beta2 = 0.99;  ///< see AdamOptions
  float weight_decay = 0;
  float clip_norm = 0;      ///< see SgdOptions
  bool decays_all = false;  ///< see SgdOptions

  static constexpr std::array kStates{StateTensor{"exp_avg"}};
  [[nodiscard]] constexpr std::string_view name() const { return "lion"; }
  [[nodiscard]] double flops() const { return 10; }
  [[nodiscard]] LionRates rates(const StepContext& context) const;
  friend bool operator==(const LionOptions&, const LionOptions&) = default;
};

using OptimizerOptions = std::variant<SgdOptions, AdamOptions, RmspropOptions, LionOptions>;

/// An optimizer that users choose by its name.
struct Optimizer {
  std::string_view name;      ///< "adamw"
  OptimizerOptions defaults;  ///< PyTorch's or the paper's, except for SGD's momentum
  float learning_rate;        ///< the default
  std::string_view state;     ///< its state per parameter, in words of a help text
};

/// Returns all optimizers, in the order in which help texts list them.
[[nodiscard]] std::span<const Optimizer> optimizers();
/// Returns the optimizer with this name, or null.
[[nodiscard]] const Optimizer* find_optimizer(std::string_view name);
/// Returns "sgd", "adam", "adamw" or another name of optimizers().
[[nodiscard]] std::string_view name_of(const OptimizerOptions& options);
/// Returns the tensors that updates keep beside each parameter block.
[[nodiscard]] std::span<const StateTensor> states_of(const OptimizerOptions& options);

[[nodiscard]] inline float clip_norm(const OptimizerOptions& options) {
  return std::visit([](const auto& rule) { return rule.clip_norm; }, options);
}
[[nodiscard]] inline bool decays_all(const OptimizerOptions& options) {
  return std::visit([](const auto& rule) { return rule.decays_all; }, options);
}

/// Number of a rule's state tensors that do not depend on a momentum. They come first.
template <class Rule>
inline constexpr std::size_t kFixedStates = [] {
  std::size_t count = 0;
  for (const StateTensor& state : Rule::kStates) count += state.needs_momentum ? 0 : 1;
  return count;
}();

/// Returns `call(rule, number of its state tensors)`, the number as an integral constant.
template <class Call>
auto with_rule(const OptimizerOptions& options, const Call& call) {
  return std::visit(
      [&]<class Rule>(const Rule& rule) {
        constexpr std::size_t kAll = Rule::kStates.size();
        if constexpr (kFixedStates<Rule> < kAll) {
          if (rule.momentum == 0) {
            return call(rule, std::integral_constant<std::size_t, kFixedStates<Rule>>{});
          }
        }
        return call(rule, std::integral_constant<std::size_t, kAll>{});
      },
      options);
}

}  // namespace spillway
