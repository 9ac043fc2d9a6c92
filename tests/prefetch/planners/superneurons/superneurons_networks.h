#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "prefetch/task_graph.h"

namespace spillway::prefetch::testing {

/// Builds training steps with SuperNeurons' accounting. Every layer's output is a separate fp32
/// tensor. Convolution, pooling, linear, dropout and batch normalization make a gradient for their
/// input; the backward passes of ReLU, LRN and softmax are in place. Images, labels, weights and
/// their gradients, masks and workspaces take no memory.
///
/// The backward passes of convolution, linear and batch normalization read their input; those of
/// ReLU, LRN, pooling and softmax read input and output; those of dropout, fork and join read
/// neither.
class SuperNeuronsStep {
 public:
  /// A tensor between layers.
  struct Tensor {
    std::uint64_t channels;
    std::uint64_t extent;  ///< height and width
    DataId block;
  };
  struct Window {
    std::uint64_t kernel;
    std::uint64_t stride = 1;
    std::uint64_t padding = 0;
  };

  explicit SuperNeuronsStep(std::uint64_t batch) : batch_{batch} {}

  Tensor first_convolution(std::uint64_t image_extent, std::uint64_t channels, Window window);
  Tensor convolution(Tensor x, std::uint64_t channels, Window window);
  Tensor relu(Tensor x) { return add(kRelu, x, x); }
  Tensor lrn(Tensor x) { return add(kLrn, x, x); }
  Tensor batch_norm(Tensor x) { return add(kBatchNorm, x, x); }
  Tensor pool(Tensor x, Window window);
  Tensor linear(Tensor x, std::uint64_t features) {
    return add(kLinear, x, {.channels = features, .extent = 1, .block = {}});
  }
  Tensor dropout(Tensor x) { return add(kDropout, x, x); }
  Tensor softmax(Tensor x);
  Tensor fork(Tensor x);
  Tensor join(Tensor x, Tensor y);

  /// Returns the step: all layers forward, then backward in reverse order.
  TaskGraph finish();

 private:
  enum class Saves { kNeither, kInput, kInputAndOutput };
  struct Layer {
    const char* kind;
    TaskKind task;
    Saves saves;
    bool in_place;  ///< its backward pass
  };
  static constexpr Layer kConvolution{"conv", TaskKind::kConvolution, Saves::kInput, false};
  static constexpr Layer kRelu{"relu", TaskKind::kActivation, Saves::kInputAndOutput, true};
  static constexpr Layer kLrn{"lrn", TaskKind::kNormalization, Saves::kInputAndOutput, true};
  static constexpr Layer kBatchNorm{"bn", TaskKind::kNormalization, Saves::kInput, false};
  static constexpr Layer kPool{"pool", TaskKind::kPool, Saves::kInputAndOutput, false};
  static constexpr Layer kLinear{"fc", TaskKind::kLinear, Saves::kInput, false};
  static constexpr Layer kDropout{"dropout", TaskKind::kDropout, Saves::kNeither, false};
  static constexpr Layer kSoftmax{"softmax", TaskKind::kOther, Saves::kInputAndOutput, true};

  Tensor add(const Layer& layer, Tensor x, Tensor y);
  DataId new_block(const std::string& name, std::uint64_t channels, std::uint64_t extent);
  std::string next_name(const std::string& kind);

  std::uint64_t batch_;
  TaskGraph graph_;
  std::unordered_map<std::string, int> counts_;
  std::unordered_map<std::uint32_t, std::vector<DataId>> gradients_;  // by block: its contributions
  std::vector<std::function<void()>> backward_;
};

/// AlexNet as in the paper's footnote 3: 23 layers, images of 227 x 227, no groups.
TaskGraph superneurons_alexnet(std::uint64_t batch);

/// A ResNet of bottleneck blocks, with `blocks` for each of the four stages: {3, 4, 6, 3} is
/// ResNet-50. Each block has a fork before it, and a join and a ReLU after it.
TaskGraph superneurons_resnet(const std::vector<int>& blocks, std::uint64_t batch);

}  // namespace spillway::prefetch::testing
