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
  StagedBatch(Precision precision, const LoadBatch& op);

  [[nodiscard]] um::Bytes bytes() const { return images_ + image_bytes_; }
  [[nodiscard]] um::Bytes labels_bytes() const { return labels_bytes_; }
  /// Offset of Batch::byte_numbers, for a batch with bytes.
  [[nodiscard]] um::Bytes byte_numbers() const { return byte_numbers_; }
  /// Offset of the images.
  [[nodiscard]] um::Bytes images() const { return images_; }

  /// Copies the samples of `op`, starting at number `first` of `batch`, into `to`, which has
  /// bytes() bytes. Requires: has_all_samples().
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
