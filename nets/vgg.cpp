#include "nets/vgg.h"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "nets/builder.h"

namespace spillway::nets {
namespace {

/// Convolutions of 3x3 with ReLU; a max pooling ends the stage.
struct Stage {
  std::size_t convolutions;
  std::size_t channels;
};

constexpr std::array<Stage, 5> kVgg16{{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}};
constexpr std::array<Stage, 5> kVgg19{{{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}}};
constexpr std::size_t kHidden = 4096;

NodeId add_stage(Builder& net, NodeId x, const Stage& stage, const std::string& number) {
  for (std::size_t i = 1; i <= stage.convolutions; ++i) {
    const std::string place = number + "_" + std::to_string(i);
    x = net.convolution("conv" + place, x,
                        {.channels = stage.channels, .kernel = square(3), .padding = square(1)});
    x = net.relu("relu" + place, x);
  }
  return net.pool("pool" + number, x, {});
}

Network vgg(std::string name, std::span<const Stage> stages, const Shape& image,
            std::size_t classes) {
  Builder net{std::move(name), image};
  NodeId x = net.input();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    x = add_stage(net, x, stages[i], std::to_string(i + 1));
  }
  for (const std::string number : {"6", "7"}) {
    x = net.linear("fc" + number, x, {.features = kHidden});
    x = net.relu("relu" + number, x);
    x = net.dropout("drop" + number, x, {});
  }
  return net.build(net.linear("fc8", x, {.features = classes}));
}

}  // namespace

Network vgg16(const Shape& image, std::size_t classes) {
  return vgg("vgg16", kVgg16, image, classes);
}

Network vgg19(const Shape& image, std::size_t classes) {
  return vgg("vgg19", kVgg19, image, classes);
}

}  // namespace spillway::nets
