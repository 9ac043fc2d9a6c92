#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/ops/parameter.h"

namespace spillway {

/// The rule that first parameters are drawn by. Norms begin with gamma 1, beta 0, running mean 0
/// and variance 1 by all of them; tables of embeddings and tokens with deviation 0.02, as GPT-2's.
enum class Initialisation : std::uint8_t {
  /// Convolutions by He (normal, variance 2 / fan-in); transposed convolutions with as many outputs
  /// as inputs by bilinear interpolation of each channel (Long et al., 2015, section 3.3), others
  /// by
  /// He, with the inputs and taps of the kernel as fan-in; linear layers by Xavier (uniform within
  /// +-sqrt(6 / (fan-in + fan-out))); biases 0.
  kXavier,
  /// As torchvision draws VGG: convolutions by He's rule with the outputs' fan (variance 2 /
  /// fan-out), linear layers with deviation 0.01, whose small logits make a first loss of about
  /// log(classes); the rest as kXavier.
  kTorchvision,
  /// As torchvision draws ResNet: convolutions as kTorchvision, linear layers as kPytorch.
  kTorchvisionResnet,
  /// As torchvision draws DenseNet: convolutions as kXavier, weights of linear layers as kPytorch,
  /// biases 0.
  kTorchvisionDensenet,
  /// PyTorch's defaults of layers: weights and biases of convolutions and linear layers uniform
  /// within +-1 / sqrt(fan-in); the rest as kXavier.
  kPytorch
};

/// "xavier", "torchvision", "torchvision-resnet", "torchvision-densenet" or "pytorch".
[[nodiscard]] std::string name_of(Initialisation rule);
/// kTorchvision for the built-in networks of photos, by name; kXavier for LeNet, transformers and
/// networks of files.
[[nodiscard]] Initialisation usual_initialisation(const std::string& network);
/// Nothing for another name.
[[nodiscard]] std::optional<Initialisation> find_initialisation(const std::string& name);

/// The numbers a parameter block starts with, in the canonical order of parameter.h. `index` is the
/// block's place in the network, counted as if each that is trained had one of the optimizer's
/// beside it, whatever it has: each block draws from a sequence of its own.
[[nodiscard]] std::vector<float> initial_values(const ParameterSpec& spec, std::uint64_t seed,
                                                std::uint64_t index,
                                                Initialisation rule = Initialisation::kXavier);

}  // namespace spillway
