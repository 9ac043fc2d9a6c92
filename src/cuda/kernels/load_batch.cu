#include <cstddef>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/staged_batch.h"
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
__global__ void pack_images(const T* images, T* x, Images g) {
  for (std::size_t i = first_item(); i < g.packs; i += item_stride()) {
    const std::size_t pixel = i % g.pixels;
    const std::size_t pack = i / g.pixels % g.packs_of_pixel;
    const std::size_t image = i / g.pixels / g.packs_of_pixel;
    Pack<T> values;
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      const std::size_t c = pack * Pack<T>::kLanes + l;
      values.lanes[l] =
          c < g.channels ? load_one(images, (image * g.channels + c) * g.pixels + pixel) : 0.F;
    }
    store(x, (image * g.pixels + pixel) * g.packs_of_pixel + pack, values);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LoadBatch& op) {
  um::expects(op.is_staged, "a batch that waits in near memory");
  const auto load = [machine, op](const auto& operands) {
    const StagedBatch staged{machine.precision, op};
    um::check(cudaMemcpyAsync(operands.out.labels, operands.in.staged,
                              staged.labels_bytes().count(), cudaMemcpyDeviceToDevice,
                              machine.stream));
    if (op.x.image.form == nets::Form::kTokens) {
      um::check(cudaMemcpyAsync(operands.out.x, operands.in.staged + staged.images().count(),
                                float_bytes(op.x.elements()).count(), cudaMemcpyDeviceToDevice,
                                machine.stream));
      return;
    }
    with_element(machine.precision, [&](auto element) {
      using T = decltype(element);
      const Images g{.pixels = op.x.image.height * op.x.image.width,
                     .channels = op.x.image.channels,
                     .packs_of_pixel = Layout::padded(op.x.image.channels) / Pack<T>::kLanes,
                     .packs = pack_count<T>(op.x)};
      launch(machine.stream, g.packs, pack_images<T>,
             tensor<const T>(operands.in.staged + staged.images().count()),
             tensor<T>(operands.out.x), g);
    });
  };
  return kernel_of(op, load);
}

}  // namespace spillway::cuda
