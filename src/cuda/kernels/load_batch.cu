#include <cstddef>
#include <cstdint>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/staged_batch.h"
#include "um/cuda/driver/check.h"

namespace spillway::cuda {
namespace {

struct Images {
  std::size_t pixels;  // per image
  std::size_t channels;
  std::size_t packs_of_pixel;
  std::size_t packs;  // over all images
};

// Images stored as elements: returns element `i` of all images.
template <class T>
struct Elements {
  const T* images;
  __device__ float operator()(std::size_t /*image*/, std::size_t /*channel*/, std::size_t i) const {
    return load_one(images, i);
  }
};

// Images stored as bytes: returns the byte's number, or zero if the image's label is ignored.
struct ByteNumbers {
  const std::uint8_t* images;
  const float* numbers;  // (C, kByteValues)
  const std::int32_t* labels;
  std::size_t labels_each;
  __device__ float operator()(std::size_t image, std::size_t channel, std::size_t i) const {
    if (labels[image * labels_each] < 0) return 0.F;
    return numbers[channel * kByteValues + images[i]];
  }
};

// Converts (N, C, H, W) to (N, H, W, padded C). Neighbouring threads handle neighbouring pixels,
// which are adjacent on both sides if a pixel is one pack.
template <class T, class Source>
__global__ void pack_images(Source source, T* x, Images g) {
  for (std::size_t i = first_item(); i < g.packs; i += item_stride()) {
    const std::size_t pixel = i % g.pixels;
    const std::size_t pack = i / g.pixels % g.packs_of_pixel;
    const std::size_t image = i / g.pixels / g.packs_of_pixel;
    Pack<T> values;
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      const std::size_t c = pack * Pack<T>::kLanes + l;
      values.lanes[l] =
          c < g.channels ? source(image, c, (image * g.channels + c) * g.pixels + pixel) : 0.F;
    }
    store(x, (image * g.pixels + pixel) * g.packs_of_pixel + pack, values);
  }
}

template <class T>
void enqueue_pack(const Machine& machine, const LoadBatch& op, const StagedBatch& staged,
                  std::byte* begin, T* x) {
  const Images g{.pixels = op.x.image.height * op.x.image.width,
                 .channels = op.x.image.channels,
                 .packs_of_pixel = Layout::padded(op.x.image.channels) / Pack<T>::kLanes,
                 .packs = pack_count<T>(op.x)};
  std::byte* const images = begin + staged.images(op.first_sample).count();
  if (op.has_bytes) {
    const ByteNumbers source{
        .images = tensor<const std::uint8_t>(images),
        .numbers = tensor<const float>(begin + staged.byte_numbers().count()),
        .labels = tensor<const std::int32_t>(begin + staged.labels(op.first_sample).count()),
        .labels_each = op.labels_each};
    launch(machine.stream, g.packs, pack_images<T, ByteNumbers>, source, x, g);
  } else {
    const Elements<T> source{.images = tensor<const T>(images)};
    launch(machine.stream, g.packs, pack_images<T, Elements<T>>, source, x, g);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LoadBatch& op) {
  um::expects(op.is_staged, "a batch that waits in near memory");
  const auto load = [machine, op](const auto& operands) {
    const StagedBatch staged{machine.precision, op.staged()};
    std::byte* const begin = operands.in.staged;
    um::check(cudaMemcpyAsync(operands.out.labels, begin + staged.labels(op.first_sample).count(),
                              staged.labels(op.x.batch).count(), cudaMemcpyDeviceToDevice,
                              machine.stream));
    if (op.x.image.form == nets::Form::kTokens) {
      um::check(cudaMemcpyAsync(operands.out.x, begin + staged.images(op.first_sample).count(),
                                float_bytes(op.x.elements()).count(), cudaMemcpyDeviceToDevice,
                                machine.stream));
      return;
    }
    with_element(machine.precision, [&](auto element) {
      enqueue_pack(machine, op, staged, begin, tensor<decltype(element)>(operands.out.x));
    });
  };
  return kernel_of(op, load);
}

}  // namespace spillway::cuda
