#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "nets/shape.h"

namespace spillway::nets {

/// What the layers of a network are, as data: hyper-parameters only, no weights and no arithmetic.

/// y = W * x + b. Weights (channels, input channels / groups, kernel height, kernel width).
struct Convolution {
  std::size_t channels;
  Extent kernel = square(1);
  Extent stride = square(1);
  Extent padding = square(0);  ///< zeros on both sides
  bool bias = true;
  Extent dilation = square(1);  ///< distance between neighbours under the kernel
  /// Input and output channels fall into so many groups; each output reads its own group only.
  std::size_t groups = 1;
};

/// The adjoint of a convolution that makes x of y: it makes larger images. A pixel of x adds its
/// multiple of the kernel to y, at its place times the stride less the padding. Weights (input
/// channels, channels / groups, kernel height, kernel width); sizes are (n - 1) stride - 2 padding
/// + dilation (kernel - 1) + 1 + output padding (PyTorch's ConvTranspose2d).
struct TransposedConvolution {
  std::size_t channels;
  Extent kernel = square(1);
  Extent stride = square(1);
  Extent padding = square(0);  ///< cut off from y on both sides
  bool bias = true;
  Extent dilation = square(1);        ///< distance between neighbours of the kernel
  std::size_t groups = 1;             ///< as in a convolution
  Extent output_padding = square(0);  ///< rows and columns more below and right; under the stride
};

/// Per channel: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, statistics over the batch.
struct BatchNorm {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< running = (1 - momentum) running + momentum batch
};

struct Relu {
  static constexpr std::string_view kText = "ReLU";
  static constexpr bool kKeepsShape = true;  ///< makes what it reads, element by element
};

enum class PoolKind { kMax, kAverage };

struct Pool {
  PoolKind kind = PoolKind::kMax;
  Extent kernel = square(2);
  Extent stride = square(2);
  Extent padding = square(0);
  /// An average is over all positions of its window; otherwise over those inside the image. Not of
  /// windows that reach beyond the padding.
  bool counts_padding = false;
  /// A rest that fills no window gets one that sticks out behind, unless it would lie in padding
  /// alone (PyTorch's and Caffe's ceil mode); otherwise the rest is dropped.
  bool rounds_up = false;
};

/// Averages each channel to one number: (C, H, W) to (C, 1, 1).
struct GlobalAveragePool {};

/// y = x / (k + alpha / size * s)^beta, where s is the sum of squares of the `size` channels around
/// the element's (Krizhevsky et al., 2012, section 3.3; as in PyTorch, and unlike there, alpha is
/// divided by the size).
struct LocalResponseNorm {
  std::size_t size = 5;  ///< odd
  float alpha = 1e-4F;
  float beta = 0.75F;
  float k = 1;
};

/// y = W x + b over all elements of x; of a sequence, over those of each token.
struct Linear {
  std::size_t features;
  bool bias = true;
};

/// Zeroes each element with this probability while training and scales the others by 1 / (1 - p).
struct Dropout {
  float probability = 0.5F;
};

/// x1 + x2, of equal shapes.
struct Add {};

/// The channels of x1, those of x2, and so on; of two inputs or more, of equal heights and widths.
struct Concat {};

/// The pixels of x1 in a window as high and wide as x2, whose content is not looked at (Long et
/// al., 2015, crop the upsampled scores to the image).
struct Crop {
  bool is_centred = true;     ///< of an odd rest, one more is cut off below and right
  Extent offset = square(0);  ///< otherwise: rows and columns cut off above and left
};

/// (C, H, W) to (C H W, 1, 1).
struct Flatten {};

/// Mean of -log softmax(x)[label] over the positions of the batch's images that have a label that
/// is not negative: one position each for (C, 1, 1), or one label for each pixel. The last layer;
/// auxiliary heads have one each, and training minimises the sum of the weighted losses.
struct SoftmaxCrossEntropy {
  float weight = 1;
};

/// y = x P(X <= x) for a standard normal X, by the error function (Hendrycks and Gimpel, 2016), or
/// by their approximation, x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
struct Gelu {
  static constexpr std::string_view kText = "GELU";
  static constexpr bool kKeepsShape = true;
  bool tanh = false;  ///< the approximation
};

/// Row `t` of a table, for each token t: (vocabulary, features) weights.
struct Embedding {
  std::size_t vocabulary;
  std::size_t features;
};

/// Adds row i of a table to token i of each sequence: (positions, channels) weights. Sequences have
/// at most so many tokens; exactly so many where the number is left open. With segments, there are
/// (segments, channels) more, of which the first row is added to all tokens: BERT's token types, of
/// text that is all one segment.
struct PositionEmbedding {
  std::size_t positions = 0;  ///< 0: as many as a sequence has tokens
  std::size_t segments = 0;

  /// Of sequences like `x`.
  [[nodiscard]] constexpr std::size_t rows(const Shape& x) const {
    return positions == 0 ? x.height : positions;
  }
};

/// Of each token: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, over its channels (Ba et
/// al., 2016).
struct LayerNorm {
  static constexpr std::string_view kText = "layer norm";
  float epsilon = 1e-5F;
};

/// Of each token: y = gamma x / sqrt(mean of x^2 + epsilon) (Zhang and Sennrich, 2019).
struct RmsNorm {
  static constexpr std::string_view kText = "RMS norm";
  float epsilon = 1e-5F;
};

/// Of each token, which is a gate g and behind it as many values v: y = v g / (1 + exp(-g))
/// (Shazeer, 2020: SwiGLU).
struct Swiglu {
  static constexpr std::string_view kText = "SwiGLU";
};

/// Turns pairs of channels of each query and key by an angle that grows with the token's place i
/// (Su et al., 2021): channels j and j + d / 2 of a head of d, by i base^(-2 j / d). A token's
/// channels are the queries of all heads, then the keys of the key heads, then their values, all of
/// one width d. Each key head serves as many heads as another, the first one the first.
struct Rotary {
  std::size_t heads;
  std::size_t kv_heads = 0;  ///< key heads; 0: as many as heads
  float base = 10000;
};

/// Of each head: y = softmax(Q K^T / sqrt(d)) V, over the tokens of the sequence (Vaswani et al.,
/// 2017), with `causal` over those up to the token's own. The channels that it reads are in
/// Rotary's order; those it makes are the heads', one after the other.
struct Attention {
  std::size_t heads;
  std::size_t kv_heads = 0;  ///< key heads; 0: as many as heads
  bool causal = true;
  float dropout = 0;  ///< the probability of each weight to be dropped, while training
};

/// An image as a sequence: a token for each pixel, row by row, with `class_token` behind one that
/// is trained, the same for all images: (channels) weights.
struct ImageTokens {
  static constexpr std::string_view kText = "image as tokens";
  bool class_token = true;
};

/// The first token of a sequence, as a vector.
struct FirstToken {
  static constexpr std::string_view kText = "first token";
};

/// The mean of -log softmax(W x + b)[label] over the tokens whose label is not negative: a linear
/// layer to a whole vocabulary and the loss in one, so that the logits are never there all at
/// once. With a second input, an Embedding, W is that one's table. The last layer.
struct VocabularyLoss {
  std::size_t vocabulary;
  bool bias = false;
};

using Layer =
    std::variant<Convolution, TransposedConvolution, BatchNorm, Relu, Pool, GlobalAveragePool,
                 LocalResponseNorm, Linear, Dropout, Add, Concat, Crop, Flatten,
                 SoftmaxCrossEntropy, Gelu, Embedding, PositionEmbedding, LayerNorm, RmsNorm,
                 Swiglu, Rotary, Attention, ImageTokens, FirstToken, VocabularyLoss>;

/// Key heads of a layer that has heads.
template <class Headed>
[[nodiscard]] constexpr std::size_t key_heads(const Headed& layer) {
  return layer.kv_heads == 0 ? layer.heads : layer.kv_heads;
}

/// What a layer does, for sentences: "max pool 2x2, stride 2", "convolution 3x3, 64 channels".
[[nodiscard]] std::string to_string(const Layer& layer);

}  // namespace spillway::nets
