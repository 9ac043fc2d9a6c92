#include <cstddef>
#include <cstdint>
#include <span>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "um/cuda/driver/check.h"

namespace spillway::cuda {
namespace {

struct Images {
  std::size_t pixels;  // of an image
  std::size_t channels;
  std::size_t packs_of_pixel;
  std::size_t packs;  // of all images
};

// From (N, C, H, W) to (N, H, W, padded C). Neighbouring threads have neighbouring pixels, which
// are neighbours in memory on both sides where a pixel is one pack.
template <class T>
__global__ void pack_images(const float* images, T* x, Images g) {
  for (std::size_t i = first_item(); i < g.packs; i += item_stride()) {
    const std::size_t pixel = i % g.pixels;
    const std::size_t pack = i / g.pixels % g.packs_of_pixel;
    const std::size_t image = i / g.pixels / g.packs_of_pixel;
    Pack<T> values;
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      const std::size_t c = pack * Pack<T>::kLanes + l;
      values.lanes[l] = c < g.channels ? images[(image * g.channels + c) * g.pixels + pixel] : 0.F;
    }
    store(x, (image * g.pixels + pixel) * g.packs_of_pixel + pack, values);
  }
}

void copy_in(cudaStream_t stream, std::span<const std::byte> from, std::byte* to) {
  um::check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream));
}

}  // namespace

// The images go to the workspace as they are, and are laid out there. Out of Backend's batch
// memory, which is pinned, both copies are the device's own affair; out of other memory the driver
// may copy first, while the caller waits.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LoadBatch& op) {
  const auto load = [machine, op](const auto& operands, const auto& arguments) {
    const Batch& batch = *arguments.context->batch;
    const std::size_t first = arguments.context->first_sample;
    um::expects(has_all_samples(batch, op.x, op.labels_each, first),
                "a batch has all samples of the step");
    const auto images =
        std::span{batch.images}.subspan(first * op.x.image.elements(), op.x.elements());
    const auto labels = std::span{batch.labels}.subspan(first * op.labels_each, op.label_count());
    copy_in(machine.stream, std::as_bytes(images), arguments.workspace);
    copy_in(machine.stream, std::as_bytes(labels), operands.out.labels);
    with_element(machine.precision, [&](auto element) {
      using T = decltype(element);
      const Images g{.pixels = op.x.image.height * op.x.image.width,
                     .channels = op.x.image.channels,
                     .packs_of_pixel = Layout::padded(op.x.image.channels) / Pack<T>::kLanes,
                     .packs = pack_count<T>(op.x)};
      launch(machine.stream, g.packs, pack_images<T>, reinterpret_cast<float*>(arguments.workspace),
             tensor<T>(operands.out.x), g);
    });
  };
  return kernel_of(op, load);
}

um::Bytes workspace_of(const Machine& /*machine*/, const LoadBatch& op) {
  return float_bytes(op.x.elements());
}

}  // namespace spillway::cuda
