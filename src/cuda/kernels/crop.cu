#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

// An image and one that lies over it, `down` and `across` from its first pixel; negative: the other
// begins outside.
struct Overlay {
  int target_height;
  int target_width;
  int source_height;
  int source_width;
  int down;
  int across;
  std::size_t packs_of_pixel;
  std::size_t packs;  // of all targets
};

// Each pixel of the target from its place in the source; zero where that has none.
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

std::byte* source_of(const Operands<CropForward>& operands) { return operands.in.x; }
std::byte* source_of(const Operands<CropBackward>& operands) { return operands.in.dy; }
std::byte* target_of(const Operands<CropForward>& operands) { return operands.out.y; }
std::byte* target_of(const Operands<CropBackward>& operands) { return operands.out.dx; }

template <class Op>
class CropKernel final : public CudaKernel {
 public:
  CropKernel(const Machine& machine, const Op& op, const TensorShape& source,
             const TensorShape& target, int down, int across)
      : CudaKernel{machine, operand_count(op)},
        source_{source},
        target_{target},
        down_{down},
        across_{across} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<Op>(arguments.operands);
    with_element(this->machine().precision, [&](auto element) {
      using T = decltype(element);
      const Overlay g{.target_height = static_cast<int>(target_.image.height),
                      .target_width = static_cast<int>(target_.image.width),
                      .source_height = static_cast<int>(source_.image.height),
                      .source_width = static_cast<int>(source_.image.width),
                      .down = down_,
                      .across = across_,
                      .packs_of_pixel = Layout::padded(target_.image.channels) / Pack<T>::kLanes,
                      .packs = pack_count<T>(target_)};
      launch(stream(), g.packs, overlay<T>, tensor<const T>(source_of(operands)),
             tensor<T>(target_of(operands)), g);
    });
  }

  TensorShape source_;
  TensorShape target_;
  int down_;
  int across_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropForward& op) {
  return std::make_unique<CropKernel<CropForward>>(machine, op, op.x, op.y,
                                                   static_cast<int>(op.offset.height),
                                                   static_cast<int>(op.offset.width));
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropBackward& op) {
  return std::make_unique<CropKernel<CropBackward>>(machine, op, op.y, op.x,
                                                    -static_cast<int>(op.offset.height),
                                                    -static_cast<int>(op.offset.width));
}

}  // namespace spillway::cuda
