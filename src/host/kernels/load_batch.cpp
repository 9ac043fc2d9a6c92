#include <cstring>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

class LoadBatchKernel final : public HostKernel {
 public:
  LoadBatchKernel(const Machine& machine, const LoadBatch& op)
      : HostKernel{machine, operand_count(op)},
        layout_{machine.layout},
        shape_{op.x},
        labels_each_{op.labels_each} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<LoadBatch>(arguments.operands);
    const Batch& batch = *arguments.context->batch;
    const std::size_t from = shape_.image.elements();
    const std::size_t first = arguments.context->first_sample;
    um::expects(has_all_samples(batch, shape_, labels_each_, first),
                "a batch has all samples of the step");
    const std::size_t to = layout_.padded(shape_.image).elements();
    float* const x = floats(operands.out.x);
#pragma omp parallel for schedule(static)
    for (std::size_t n = 0; n < shape_.batch; ++n) {
      copy_image(batch.images.data() + (first + n) * from, x + n * to);
    }
    std::memcpy(operands.out.labels, batch.labels.data() + first * labels_each_,
                shape_.batch * labels_each_ * sizeof(std::int32_t));
  }

  void copy_image(const float* image, float* x) const {
    const auto& [channels, height, width] = shape_.image;
    for (std::size_t c = 0; c < layout_.padded(channels); ++c) {
      for (std::size_t h = 0; h < height; ++h) {
        for (std::size_t w = 0; w < width; ++w) {
          x[layout_.index(shape_.image, c, h, w)] =
              c < channels ? image[(c * height + h) * width + w] : 0.F;
        }
      }
    }
  }

  Layout layout_;
  TensorShape shape_;
  std::size_t labels_each_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LoadBatch& op) {
  return std::make_unique<LoadBatchKernel>(machine, op);
}

}  // namespace spillway::host
