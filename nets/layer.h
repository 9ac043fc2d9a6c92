#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "nets/shape.h"

namespace spillway::nets {

/// Layers as data: hyper-parameters only, no weights and no arithmetic.

/// y = W * x + b. Weights (channels, input channels / groups, kernel height, kernel width).
struct Convolution {
  std::size_t channels;
  Extent kernel = square(1);
  Extent stride = square(1);
  Extent padding = square(0);  ///< zeros on both sides
  bool bias = true;
  Extent dilation = square(1);  ///< distance between kernel elements
  /// Splits input and output channels into groups; an output reads only its own group.
  std::size_t groups = 1;
};

/// The adjoint of the convolution from y to x, which enlarges images. A pixel of x adds a multiple
/// of the kernel to y, at its position times the stride less the padding. Weights (input channels,
/// channels / groups, kernel height, kernel width). Output size: (n - 1) stride - 2 padding +
/// dilation (kernel - 1) + 1 + output padding (PyTorch's ConvTranspose2d).
struct TransposedConvolution {
  std::size_t channels;
  Extent kernel = square(1);
  Extent stride = square(1);
  Extent padding = square(0);  ///< cropped from y on both sides
  bool bias = true;
  Extent dilation = square(1);        ///< distance between kernel elements
  std::size_t groups = 1;             ///< as in a convolution
  Extent output_padding = square(0);  ///< extra rows below, columns right; less than the stride
};

/// Per channel: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, statistics over the batch.
struct BatchNorm {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< running = (1 - momentum) running + momentum batch
};

struct Relu {
  static constexpr std::string_view kText = "ReLU";
  static constexpr bool kKeepsShape = true;  ///< the output has the input's shape
};

enum class PoolKind { kMax, kAverage };

struct Pool {
  PoolKind kind = PoolKind::kMax;
  Extent kernel = square(2);
  Extent stride = square(2);
  Extent padding = square(0);
  /// Averages over the padding inside a window, too; otherwise only over the image. Not allowed if
  /// windows reach beyond the padding.
  bool counts_padding = false;
  /// Adds a partial window at the end for leftover elements, unless it would lie in padding alone
  /// (the ceil mode of PyTorch and Caffe); otherwise drops them.
  bool rounds_up = false;
};

/// Averages each channel to one number: (C, H, W) to (C, 1, 1).
struct GlobalAveragePool {};

/// y = x / (k + alpha / size * s)^beta, where s is the sum of squares of the `size` channels around
/// the element's channel (Krizhevsky et al., 2012, section 3.3). As in PyTorch, and unlike the
/// paper, alpha is divided by the size.
struct LocalResponseNorm {
  std::size_t size = 5;  ///< odd
  float alpha = 1e-4F;
  float beta = 0.75F;
  float k = 1;
};

/// y = W x + b over all elements of x; in a sequence, over the elements of each token.
struct Linear {
  std::size_t features;
  bool bias = true;
};

/// Zeroes each element with this probability during training and scales the others by 1 / (1 - p).
struct Dropout {
  float probability = 0.5F;
};

/// x1 + x2, of equal shapes.
struct Add {};

/// Concatenates the channels of two or more inputs of equal heights and widths.
struct Concat {};

/// Crops x1 to a window of x2's height and width; ignores the values of x2 (Long et al., 2015, crop
/// the upsampled scores to the image).
struct Crop {
  bool is_centred = true;     ///< crops one more below and to the right if the difference is odd
  Extent offset = square(0);  ///< otherwise: rows and columns cropped at the top and left
};

/// (C, H, W) to (C H W, 1, 1).
struct Flatten {};

/// Mean of -log softmax(x)[label] over all positions in the batch with a label that is not
/// negative. There is one position for (C, 1, 1), or one label per pixel. Ends the network or an
/// auxiliary head; training minimises the weighted sum of all losses.
struct SoftmaxCrossEntropy {
  float weight = 1;
};

/// y = x P(X <= x) for a standard normal X, by the error function (Hendrycks and Gimpel, 2016), or
/// by their approximation, x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
struct Gelu {
  static constexpr std::string_view kText = "GELU";
  static constexpr bool kKeepsShape = true;
  bool tanh = false;  ///< uses the approximation
};

/// Looks up row `t` of a table for each token t: (vocabulary, features) weights.
struct Embedding {
  std::size_t vocabulary;
  std::size_t features;
};

/// Adds row i of a table to token i of each sequence: (positions, channels) weights. Sequences have
/// at most `positions` tokens. With 0, the table has one row for each token of the sequences that
/// the layer reads, and they have exactly that many. Segments add (segments, channels) weights; the
/// first row is added to all tokens. These are BERT's token types for text of one segment.
struct PositionEmbedding {
  std::size_t positions = 0;  ///< 0: as many as a sequence has tokens
  std::size_t segments = 0;

  /// Returns the rows of the table for sequences like `x`.
  [[nodiscard]] constexpr std::size_t rows(const Shape& x) const {
    return positions == 0 ? x.height : positions;
  }
};

/// Per token: y = gamma (x - mean) / sqrt(variance + epsilon) + beta, over its channels (Ba et al.,
/// 2016).
struct LayerNorm {
  static constexpr std::string_view kText = "layer norm";
  float epsilon = 1e-5F;
};

/// Per token: y = gamma x / sqrt(mean of x^2 + epsilon) (Zhang and Sennrich, 2019).
struct RmsNorm {
  static constexpr std::string_view kText = "RMS norm";
  float epsilon = 1e-5F;
};

/// Per token, which holds a gate g followed by as many values v: y = v g / (1 + exp(-g)) (Shazeer,
/// 2020: SwiGLU).
struct Swiglu {
  static constexpr std::string_view kText = "SwiGLU";
};

/// Rotates pairs of channels of each query and key by an angle that grows with the token's position
/// i (Su et al., 2021). Channels j and j + d / 2 of a head of width d rotate by i base^(-2 j / d).
/// A token's channels are the queries of all heads, then the keys of the key heads, then their
/// values, all of width d. Each key head serves equally many consecutive heads.
struct Rotary {
  std::size_t heads;
  std::size_t kv_heads = 0;  ///< number of key heads; 0: as many as heads
  float base = 10000;
};

/// Per head: y = softmax(Q K^T / sqrt(d)) V, over the tokens of the sequence (Vaswani et al.,
/// 2017). With `causal`, only over tokens up to its own. The input channels are in Rotary's order;
/// the output concatenates the heads.
struct Attention {
  std::size_t heads;
  std::size_t kv_heads = 0;  ///< number of key heads; 0: as many as heads
  bool causal = true;
  float dropout = 0;  ///< probability of dropping each attention weight during training
};

/// Turns an image into a sequence: one token per pixel, row by row. `class_token` puts a trained
/// token in front, the same for all images: (channels) weights.
struct ImageTokens {
  static constexpr std::string_view kText = "image as tokens";
  bool class_token = true;
};

/// The first token of a sequence, as a vector.
struct FirstToken {
  static constexpr std::string_view kText = "first token";
};

/// Mean of -log softmax(W x + b)[label] over tokens with a label that is not negative. Combines a
/// linear layer to a whole vocabulary with the loss, so that not all logits exist at once. A second
/// input, an Embedding, lends its table as W. Always the last layer.
struct VocabularyLoss {
  std::size_t vocabulary;
  bool bias = false;
};

using Layer =
    std::variant<Convolution, TransposedConvolution, BatchNorm, Relu, Pool, GlobalAveragePool,
                 LocalResponseNorm, Linear, Dropout, Add, Concat, Crop, Flatten,
                 SoftmaxCrossEntropy, Gelu, Embedding, PositionEmbedding, LayerNorm, RmsNorm,
                 Swiglu, Rotary, Attention, ImageTokens, FirstToken, VocabularyLoss>;

/// Returns the number of key heads of a layer with heads.
template <class Headed>
[[nodiscard]] constexpr std::size_t key_heads(const Headed& layer) {
  return layer.kv_heads == 0 ? layer.heads : layer.kv_heads;
}

/// Describes a layer for messages: "max pool 2x2, stride 2", "convolution 3x3, 64 channels".
[[nodiscard]] std::string to_string(const Layer& layer);

}  // namespace spillway::nets
