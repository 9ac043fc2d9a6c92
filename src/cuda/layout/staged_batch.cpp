#include "src/cuda/layout/staged_batch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/ops/precision.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr um::Bytes kImagesAlignment{256};

}  // namespace

StagedBatch::StagedBatch(Precision precision, const LoadBatch& op)
    : labels_bytes_{op.label_count() * sizeof(std::int32_t)},
      images_{um::round_up(labels_bytes_, kImagesAlignment)},
      is_bf16_{precision == Precision::kBf16 && op.x.image.form != nets::Form::kTokens},
      image_bytes_{op.x.elements() * (is_bf16_ ? sizeof(Bfloat16) : sizeof(float))} {}

void StagedBatch::fill(const LoadBatch& op, const Batch& batch, std::size_t first,
                       std::span<std::byte> to) const {
  um::expects(has_all_samples(batch, op.x, op.labels_each, first),
              "a batch has all samples of the step");
  um::expects(to.size() >= bytes().count(), "room for a batch");
  const auto labels = std::span{batch.labels}.subspan(first * op.labels_each, op.label_count());
  const auto images =
      std::span{batch.images}.subspan(first * op.x.image.elements(), op.x.elements());
  std::ranges::copy(std::as_bytes(labels), to.begin());
  std::byte* const at = to.data() + images_.count();
  if (is_bf16_) {
    std::ranges::copy(images, reinterpret_cast<Bfloat16*>(at));
  } else {
    std::memcpy(at, images.data(), image_bytes_.count());
  }
}

}  // namespace spillway::cuda
