#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nets/network.h"

/// The networks that papers describe, one source of this folder a family. Each function takes the
/// shape of an image or a text, and the number of classes or tokens.
namespace spillway::nets {

/// 3x3 convolutions per stage, for five stages.
using VggDepths = std::array<std::size_t, 5>;

/// VGG (Simonyan and Zisserman, 2014), for images of 32x32 and more. Requires: at least one
/// convolution per stage.
[[nodiscard]] Network vgg(std::string name, const VggDepths& depths, const Shape& image,
                          std::size_t classes);

/// Configurations A, B, D and E of the paper's table 1.
[[nodiscard]] Network vgg11(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg13(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg16(const Shape& image, std::size_t classes);
[[nodiscard]] Network vgg19(const Shape& image, std::size_t classes);

/// moDNN's VGG-101. The paper does not give its stages; 2, 22, 66, 4 and 4 convolutions reproduce
/// the sizes in its figure 6.
[[nodiscard]] Network vgg101(const Shape& image, std::size_t classes);

/// Blocks per stage, for four stages.
using ResnetDepths = std::array<std::size_t, 4>;

/// ResNet with basic blocks of two 3x3 convolutions (He et al., 2015, table 1), for images of any
/// size.
[[nodiscard]] Network resnet18(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet34(const Shape& image, std::size_t classes);

/// ResNet with bottlenecks of 1x1, 3x3 and 1x1 convolutions, with the stride on the 3x3 ("v1.5").
/// SuperNeurons uses depths of 6, 32, n and 6 (table 4). Requires: at least one block per stage.
[[nodiscard]] Network bottleneck_resnet(std::string name, const ResnetDepths& depths,
                                        const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet50(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet101(const Shape& image, std::size_t classes);
[[nodiscard]] Network resnet152(const Shape& image, std::size_t classes);

/// AlexNet (Krizhevsky et al., 2012) in one tower, for images of 227x227 (67x67 and more). Each
/// convolution reads all channels of the previous one, as in SuperNeurons (section 4). The original
/// split the channels between two GPUs.
[[nodiscard]] Network alexnet(const Shape& image, std::size_t classes);

/// LeNet-5 with ReLU and max pooling (after LeCun et al., 1998), for images of 12x12 and more.
[[nodiscard]] Network lenet(const Shape& image, std::size_t classes);

/// OverFeat (Sermanet et al., 2013, arXiv:1312.6229), table 1, the fast model, for images of
/// 231x231 (71x71 and more). Has dropout on layers 6 and 7 (section 3.1). convnet-benchmarks has
/// the same table, without dropout.
[[nodiscard]] Network overfeat(const Shape& image, std::size_t classes);

/// SqueezeNet (Iandola et al., 2016), version 1.1, for images of 17x17 and more. Fire modules
/// squeeze the channels by 1x1 convolutions and expand them by parallel 1x1 and 3x3 convolutions.
[[nodiscard]] Network squeezenet(const Shape& image, std::size_t classes);

/// Inception v3 (Szegedy et al., 2015, "Rethinking the Inception architecture"), table 1 as
/// published with weights, for images of 299x299 (75x75 and more), without the auxiliary
/// classifier.
[[nodiscard]] Network inception_v3(const Shape& image, std::size_t classes);
/// Inception v3 with the auxiliary head of the paper's figure 8. Its loss has the published model's
/// weight of 0.4, since the paper gives none.
[[nodiscard]] Network inception_v3_with_head(const Shape& image, std::size_t classes);

/// Inception v4 (Szegedy et al., 2016, "Inception-v4, Inception-ResNet and the impact of residual
/// connections"), figures 3 to 9, for images of 299x299 (75x75 and more).
[[nodiscard]] Network inception_v4(const Shape& image, std::size_t classes);

/// GoogLeNet (Szegedy et al., 2014), table 1, for images of 31x31 and more, without the auxiliary
/// classifiers. Follows torchvision: batch norm replaces biases and local response norm, and 3x3
/// convolutions replace the paper's 5x5.
[[nodiscard]] Network googlenet(const Shape& image, std::size_t classes);
/// GoogLeNet with the paper's two auxiliary heads; each loss has weight 0.3.
[[nodiscard]] Network googlenet_with_heads(const Shape& image, std::size_t classes);

/// DenseNet-BC (Huang et al., 2016, table 1), with bottlenecks and compression, for images of 29x29
/// and more. Each layer reads the outputs of all earlier layers of its block.
[[nodiscard]] Network densenet121(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet161(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet169(const Shape& image, std::size_t classes);
[[nodiscard]] Network densenet201(const Shape& image, std::size_t classes);

/// Channels of VGG-16's five stages, and of the two convolutions that replace its linear layers.
struct FcnWidths {
  std::array<std::size_t, 5> stages{64, 128, 256, 512, 512};
  std::size_t hidden = 4096;
};

/// The stride of the scores that are upsampled to the image last.
enum class FcnStride { k32, k8 };

/// Fully convolutional network of VGG-16 (Long et al., 2015): one score per class and pixel, for
/// images of any size. Paddings and crops follow the published networks, since the paper does not
/// give them. The first convolution pads by 100, so that the 7x7 kernel fits in the smallest image.
/// Pooling rounds up. Crops begin at fixed offsets (19, or 5, 9 and 31), which align each score
/// with its pixel. Transposed convolutions are initialised by bilinear interpolation and all
/// trained; the paper keeps the last one fixed.
[[nodiscard]] Network fcn(std::string name, FcnStride stride, const FcnWidths& widths,
                          const Shape& image, std::size_t classes);

/// Upsamples scores at a 32nd of the image's size directly to the image.
[[nodiscard]] Network fcn32s(const Shape& image, std::size_t classes);
/// Adds scores of pool4 and pool3 while upsampling; the last step is by 8.
[[nodiscard]] Network fcn8s(const Shape& image, std::size_t classes);

/// The sizes of a vision transformer (Dosovitskiy et al., 2020).
struct VitSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t width;
  std::size_t patch = 16;  ///< height and width of a patch, which becomes a token
};

/// Vision transformer of any size, with the layer names of Hugging Face's files, except that
/// `attention.qkv` concatenates `query`, `key` and `value`. Classifies by the first token, which is
/// not a patch. Throws: um::Error when the image is smaller than a patch.
[[nodiscard]] Network vit(const std::string& name, const VitSizes& sizes, const Shape& image,
                          std::size_t classes);

[[nodiscard]] Network vit_b16(const Shape& image, std::size_t classes);
[[nodiscard]] Network vit_l16(const Shape& image, std::size_t classes);

/// Tokens in GPT-2's vocabulary.
inline constexpr std::size_t kGptVocabulary = 50257;

/// The sizes of a GPT-2 (Radford et al., 2019).
struct GptSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t width;    ///< channels of a token between layers
  std::size_t context;  ///< trained positions: the most tokens of a text
};

/// GPT-2 of any size, with the layer names of Hugging Face's files. The loss shares the embedding's
/// table. Throws: um::Error when `text`, the tokens of a sample, does not fit.
[[nodiscard]] Network gpt(const std::string& name, const GptSizes& sizes, const Shape& text,
                          std::size_t vocabulary);

[[nodiscard]] Network gpt2(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_medium(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_large(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network gpt2_xl(const Shape& text, std::size_t vocabulary);

/// Throws: um::Error that names the network unless `heads` divides `width`.
void expect_divided(const std::string& network, std::size_t width, std::size_t heads);

/// Tokens in Llama 2's vocabulary.
inline constexpr std::size_t kLlamaVocabulary = 32000;

/// The sizes of a Llama (Touvron et al., 2023).
struct LlamaSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t width;    ///< channels of a token between layers
  std::size_t hidden;   ///< gates of a block's second half, and also its values
  std::size_t context;  ///< the most tokens of a text
};

/// Llama of any size: RMS norms, rotary positions, grouped queries and SwiGLU, without biases. The
/// loss has its own table. Layers have the names of Hugging Face's files, except that `qkv_proj`
/// concatenates `q_proj`, `k_proj` and `v_proj`, and `gate_up_proj` concatenates `gate_proj` and
/// `up_proj`. Throws: um::Error when `text` does not fit.
[[nodiscard]] Network llama(const std::string& name, const LlamaSizes& sizes, const Shape& text,
                            std::size_t vocabulary);

/// Tokens in the vocabulary of uncased BERT.
inline constexpr std::size_t kBertVocabulary = 30522;

/// BERT with its masked-language head (Devlin et al., 2018). Layers have the names of Hugging
/// Face's files, except that `self.qkv` concatenates `query`, `key` and `value`. All text is in the
/// first segment. Throws: um::Error when `text`, the tokens of a sample, does not fit.
[[nodiscard]] Network bert_base(const Shape& text, std::size_t vocabulary);
[[nodiscard]] Network bert_large(const Shape& text, std::size_t vocabulary);

/// The sizes of a BERT.
struct BertSizes {
  std::size_t layers;
  std::size_t heads;
  std::size_t width;
  std::size_t context = 512;  ///< trained positions
};

/// BERT of any size.
[[nodiscard]] Network bert(const std::string& name, const BertSizes& sizes, const Shape& text,
                           std::size_t vocabulary);

}  // namespace spillway::nets
