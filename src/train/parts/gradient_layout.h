#pragma once

#include <cstddef>
#include <vector>

#include "src/step/step.h"
#include "src/train/parts/shard_gradients.h"
#include "um/bytes.h"

namespace spillway {

/// Where the gradients that the sub-steps of a batch add up (Step::gradients) lie in one block of
/// memory: bucket after bucket where the step exchanges them, each aligned.
class GradientLayout {
 public:
  explicit GradientLayout(const Step& step);

  /// Of all of them, with what is between.
  [[nodiscard]] um::Bytes size() const { return size_; }
  /// Where each begins, by Step::gradients.
  [[nodiscard]] const std::vector<um::Bytes>& offsets() const { return offsets_; }
  /// Which of the numbers each of TaskGraph::exchanges is of.
  [[nodiscard]] const std::vector<BucketExchange>& exchanges() const { return exchanges_; }

 private:
  void place(const Step& step, prefetch::DataId id);
  [[nodiscard]] NumberSlice numbers(const Step& step, prefetch::DataId id) const;
  [[nodiscard]] BucketExchange exchange_of(const Step& step,
                                           const prefetch::GradientExchange& exchange) const;

  um::Bytes size_;
  std::vector<um::Bytes> offsets_;
  std::vector<BucketExchange> exchanges_;
};

}  // namespace spillway
