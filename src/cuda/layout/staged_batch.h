#pragma once

#include <cstddef>
#include <span>

#include "src/ops/backend.h"
#include "src/ops/operation.h"
#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// How a batch lies in near memory while it waits for its step: the labels, the numbers that bytes
/// stand for, and the images (N, C, H, W), dense. These are as they are in the batch, bytes or
/// floats, but for floats in the elements of the precision's tensors: half their bytes in bf16.
class StagedBatch {
 public:
  StagedBatch(Precision precision, const LoadBatch& op);

  [[nodiscard]] um::Bytes bytes() const { return images_ + image_bytes_; }
  [[nodiscard]] um::Bytes labels_bytes() const { return labels_bytes_; }
  /// Where Batch::byte_numbers begin, of a batch that has bytes.
  [[nodiscard]] um::Bytes byte_numbers() const { return byte_numbers_; }
  /// Where the images begin.
  [[nodiscard]] um::Bytes images() const { return images_; }

  /// Puts the samples of `op` into `to`, of bytes() bytes, from number `first` of `batch` on.
  /// Requires: has_all_samples().
  void fill(const LoadBatch& op, const Batch& batch, std::size_t first,
            std::span<std::byte> to) const;

 private:
  um::Bytes labels_bytes_;
  um::Bytes byte_numbers_;
  um::Bytes images_;
  bool is_bf16_;
  um::Bytes image_bytes_;
};

}  // namespace spillway::cuda
