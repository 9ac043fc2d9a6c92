#pragma once

#include <cstddef>
#include <span>

#include "src/ops/backend.h"
#include "src/ops/operation.h"
#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// Memory layout of a batch that waits in near memory: labels, the numbers that bytes stand for,
/// and images (N, C, H, W), dense. Images are stored as in the batch, as bytes or floats, except
/// that bf16 converts floats to bfloat16, half their bytes.
class StagedBatch {
 public:
  /// Requires: `op` is a LoadBatch::staged().
  StagedBatch(Precision precision, const LoadBatch& op);

  [[nodiscard]] um::Bytes bytes() const { return images(samples_); }
  /// Offset of Batch::byte_numbers, for a batch with bytes.
  [[nodiscard]] um::Bytes byte_numbers() const { return byte_numbers_; }
  /// Offset of the images from number `first` on, and of their labels.
  [[nodiscard]] um::Bytes images(std::size_t first) const {
    return images_ + first * bytes_of_image_;
  }
  [[nodiscard]] um::Bytes labels(std::size_t first) const { return first * bytes_of_labels_; }

  /// Copies the samples of `op` into `to`, which has bytes() bytes. Requires: has_all_samples().
  void fill(const LoadBatch& op, const Batch& batch, std::span<std::byte> to) const;

 private:
  um::Bytes bytes_of_labels_;  // of one image
  um::Bytes byte_numbers_;
  um::Bytes images_;
  bool is_bf16_;
  um::Bytes bytes_of_image_;
  std::size_t samples_;
};

}  // namespace spillway::cuda
