#include "src/cuda/layout/staged_batch.h"

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "src/ops/tensor.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

constexpr um::Bytes kPartAlignment{256};

std::size_t image_element(bool is_bf16, const LoadBatch& op) {
  if (op.has_bytes) return 1;
  return is_bf16 ? sizeof(Bfloat16) : sizeof(float);
}

// One thread moves some 10 GB/s, less than a GPU of today takes in.
template <class From, class To>
void copy_by_some(std::span<const From> from, To* to) {
  constexpr std::size_t kLeast = std::size_t{1} << 20U;  // elements of a thread
  constexpr std::size_t kMostThreads = 8;
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 1U);
  const std::size_t parts =
      std::clamp<std::size_t>(from.size() / kLeast, 1, std::min(processors, kMostThreads));
  const auto copy = [&](std::size_t part) {
    const std::size_t begin = from.size() * part / parts;
    const std::size_t end = from.size() * (part + 1) / parts;
    std::ranges::copy(from.subspan(begin, end - begin), to + begin);
  };
  std::vector<std::jthread> others;
  others.reserve(parts - 1);
  for (std::size_t part = 1; part < parts; ++part) {
    try {
      others.emplace_back(copy, part);
    } catch (const std::system_error&) {  // the system has no thread to give
      copy(part);
    }
  }
  copy(0);
}

um::Bytes byte_numbers_size(const LoadBatch& op) {
  return op.has_bytes ? float_bytes(op.x.image.channels * kByteValues) : um::Bytes{};
}

}  // namespace

StagedBatch::StagedBatch(Precision precision, const LoadBatch& op)
    : bytes_of_labels_{op.labels_each * sizeof(std::int32_t)},
      byte_numbers_{um::round_up(labels(op.x.batch), kPartAlignment)},
      images_{um::round_up(byte_numbers_ + byte_numbers_size(op), kPartAlignment)},
      is_bf16_{precision == Precision::kBf16 && op.x.image.form != nets::Form::kTokens},
      bytes_of_image_{op.x.image.elements() * image_element(is_bf16_, op)},
      samples_{op.x.batch} {}

void StagedBatch::fill(const LoadBatch& op, const Batch& batch, std::span<std::byte> to) const {
  um::expects(has_all_samples(batch, op), "a batch has all samples of the step");
  um::expects(to.size() >= bytes().count(), "room for a batch");
  const auto put = [&](um::Bytes at, const auto& numbers) {
    const std::span bytes = std::as_bytes(numbers);
    copy_by_some(bytes, to.subspan(at.count(), bytes.size()).data());
  };
  const auto samples_of = [&](const auto& images) {
    return std::span{images}.first(op.x.elements());
  };
  put({}, std::span{batch.labels}.first(op.label_count()));
  if (op.has_bytes) {
    put(byte_numbers_, std::span{batch.byte_numbers});
    put(images_, samples_of(batch.bytes));
  } else if (is_bf16_) {
    copy_by_some(samples_of(batch.images),
                 reinterpret_cast<Bfloat16*>(to.data() + images_.count()));
  } else {
    put(images_, samples_of(batch.images));
  }
}

}  // namespace spillway::cuda
