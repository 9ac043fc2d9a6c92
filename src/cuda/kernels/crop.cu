#include <cstddef>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

// A target image over a source image; `down` and `across` are the target's offset in the source. A
// negative offset means that the target begins outside the source.
struct Overlay {
  int target_height;
  int target_width;
  int source_height;
  int source_width;
  int down;
  int across;
  std::size_t packs_of_pixel;
  std::size_t packs;  // over all targets
};

// Copies each pixel of the target from the source; zero outside the source.
template <class T>
__global__ void overlay(const T* source, T* target, Overlay g) {
  for (std::size_t i = first_item(); i < g.packs; i += item_stride()) {
    const std::size_t pack = i % g.packs_of_pixel;
    const std::size_t pixel = i / g.packs_of_pixel;
    const int column = static_cast<int>(pixel % g.target_width) + g.across;
    const int row = static_cast<int>(pixel / g.target_width % g.target_height) + g.down;
    const std::size_t image = pixel / g.target_width / g.target_height;
    Pack<T> values{};
    if (row >= 0 && row < g.source_height && column >= 0 && column < g.source_width) {
      const std::size_t place = (image * g.source_height + row) * g.source_width + column;
      values = load(source, place * g.packs_of_pixel + pack);
    }
    store(target, i, values);
  }
}

// Enqueues the copy of a target's pixels from `source` at offset (`down`, `across`).
void enqueue_overlay(const Machine& machine, const TensorShape& source, const std::byte* from,
                     const TensorShape& target, std::byte* to, int down, int across) {
  with_element(machine.precision, [&]<class T>(T) {
    const Overlay g{.target_height = static_cast<int>(target.image.height),
                    .target_width = static_cast<int>(target.image.width),
                    .source_height = static_cast<int>(source.image.height),
                    .source_width = static_cast<int>(source.image.width),
                    .down = down,
                    .across = across,
                    .packs_of_pixel = Layout::padded(target.image.channels) / Pack<T>::kLanes,
                    .packs = pack_count<T>(target)};
    launch(machine.stream, g.packs, overlay<T>, reinterpret_cast<const T*>(from), tensor<T>(to), g);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropForward& op) {
  return kernel_of(op, [machine, op](const auto& operands) {
    enqueue_overlay(machine, op.x, operands.in.x, op.y, operands.out.y,
                    static_cast<int>(op.offset.height), static_cast<int>(op.offset.width));
  });
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropBackward& op) {
  return kernel_of(op, [machine, op](const auto& operands) {
    enqueue_overlay(machine, op.y, operands.in.dy, op.x, operands.out.dx,
                    -static_cast<int>(op.offset.height), -static_cast<int>(op.offset.width));
  });
}

}  // namespace spillway::cuda
