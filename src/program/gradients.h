#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "nets/network.h"
#include "prefetch/task_graph.h"
#include "src/program/step_builder.h"

namespace spillway {

/// A gradient handed to the one layer that made the value.
struct Gradient {
  prefetch::DataId block{};
  bool may_overwrite = false;  ///< nobody else will read it
};

/// The block that tells which outputs of a ReLU are positive: the output itself, or a mask.
struct ReluOutput {
  prefetch::DataId block{};
  bool is_mask = false;
};

/// The gradients of a step under construction, on the way back. Each reader of a value contributes
/// its part; the layer that made the value takes the sum. Parts are added up as they come, so that
/// never more than two of a value are there at once. A block may be contributed to several values
/// (an addition may pass its gradient on to both sides); who takes it last may overwrite it.
class Gradients {
 public:
  explicit Gradients(StepBuilder& builder);

  /// A reader's part of the gradient of `node`; emits an addition when it is neither the first part
  /// nor the last. Does nothing for a value that needs no gradient.
  void contribute(nets::NodeId node, prefetch::DataId block);

  /// The sum of the contributions to `node`; emits the last addition.
  /// Requires: every reader of `node` has contributed.
  [[nodiscard]] Gradient take(nets::NodeId node) { return take(node, nullptr); }
  /// The same for a value that ends with a ReLU, before the ReLU: zero where the value is zero.
  [[nodiscard]] Gradient take_before_relu(nets::NodeId node, const ReluOutput& relu_output) {
    return take(node, &relu_output);
  }
  /// The same, of a value that ends with a ReLU where there is a `relu_output`, for two takers:
  /// once in each of two blocks, where two contributions that nobody else reads leave them, so that
  /// both may write over theirs; else both in one block.
  [[nodiscard]] std::array<prefetch::DataId, 2> take_twice(
      nets::NodeId node, const std::optional<ReluOutput>& relu_output);

  /// A contribution to `node` that nobody else reads, for a task that adds to it in place and
  /// contributes it anew: so a value with many readers has one block for all that they contribute,
  /// not one each. Nothing where there is none.
  [[nodiscard]] std::optional<prefetch::DataId> take_partial_sum(nets::NodeId node);

 private:
  [[nodiscard]] Gradient take(nets::NodeId node, const ReluOutput* relu_output);
  void add_part(nets::NodeId node, prefetch::DataId block);
  // Takes the two contributions that there are.
  [[nodiscard]] Gradient sum_of_both(nets::NodeId node, const ReluOutput* relu_output);
  [[nodiscard]] bool has_one_holder(prefetch::DataId block) const;
  // "relu2.gradient", "relu2.gradient2", ...
  [[nodiscard]] std::string next_name(nets::NodeId node);
  [[nodiscard]] Gradient add(const Gradient& a, const Gradient& b, const TensorShape& shape,
                             const std::string& name, const ReluOutput* relu_output);
  [[nodiscard]] Gradient relu_backward(const Gradient& gradient, const TensorShape& shape,
                                       const std::string& name, const ReluOutput& relu_output);
  [[nodiscard]] Gradient release(prefetch::DataId block);

  StepBuilder& builder_;
  std::vector<std::size_t> missing_;                          // readers still to come, by node
  std::vector<std::size_t> names_;                            // given, by node
  std::vector<std::vector<prefetch::DataId>> contributions_;  // at most two, by node
  std::unordered_map<std::uint32_t, int> holders_;            // by block
};

}  // namespace spillway
