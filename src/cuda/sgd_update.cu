#include "src/cuda/kernels.h"
#include "src/cuda/launch.cuh"
#include "src/cuda/parameter_layout.h"

namespace spillway::cuda {
namespace {

struct SgdRates {
  float learning_rate;
  float momentum;
  float weight_decay;
};

struct SgdBlocks {
  const float* old_w;
  const float* old_v;
  const float* dw;
  float* w;               // may be old_w
  float* v;               // may be old_v
  __nv_bfloat16* w_copy;  // null without one
};

// Rounds after each operation, as the host does: no fused multiply-adds. What is padding in
// parameters, momentum and gradient stays zero.
__device__ float velocity_of(float w, float v, float dw, const SgdRates& rates) {
  const float gradient = __fadd_rn(dw, __fmul_rn(rates.weight_decay, w));
  return __fadd_rn(__fmul_rn(rates.momentum, v), gradient);
}

__device__ void store_copy(__nv_bfloat16* copy, std::size_t i, const Pack<float>& w) {
  auto* const pairs = reinterpret_cast<__nv_bfloat162*>(copy) + 2 * i;
  pairs[0] = __floats2bfloat162_rn(w.lanes[0], w.lanes[1]);
  pairs[1] = __floats2bfloat162_rn(w.lanes[2], w.lanes[3]);
}

__global__ void sgd_update(SgdBlocks blocks, SgdRates rates, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<float> w = load(blocks.old_w, i);
    Pack<float> v = load(blocks.old_v, i);
    const Pack<float> dw = load(blocks.dw, i);
#pragma unroll
    for (int l = 0; l < Pack<float>::kLanes; ++l) {
      v.lanes[l] = velocity_of(w.lanes[l], v.lanes[l], dw.lanes[l], rates);
      w.lanes[l] = __fsub_rn(w.lanes[l], __fmul_rn(rates.learning_rate, v.lanes[l]));
    }
    store(blocks.w, i, w);
    store(blocks.v, i, v);
    if (blocks.w_copy != nullptr) store_copy(blocks.w_copy, i, w);
  }
}

// The floats of a block are a multiple of 8.
class SgdUpdateKernel final : public CudaKernel {
 public:
  SgdUpdateKernel(const Machine& machine, const SgdUpdate& op)
      : CudaKernel{machine, 5},
        layout_{machine.precision, op.parameters},
        momentum_{op.momentum},
        weight_decay_{op.weight_decay} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const SgdBlocks blocks{.old_w = tensor<float>(arguments, 0),
                           .old_v = tensor<float>(arguments, 1),
                           .dw = tensor<float>(arguments, 2),
                           .w = tensor<float>(arguments, 3),
                           .v = tensor<float>(arguments, 4),
                           .w_copy = copy_in(arguments.operands[3])};
    const SgdRates rates{.learning_rate = arguments.context->learning_rate,
                         .momentum = momentum_,
                         .weight_decay = weight_decay_};
    const std::size_t packs = layout_.float_count() / Pack<float>::kLanes;
    launch(stream(), packs, sgd_update, blocks, rates, packs);
  }

  [[nodiscard]] __nv_bfloat16* copy_in(std::byte* block) const {
    if (!layout_.has_bf16_copy()) return nullptr;
    return reinterpret_cast<__nv_bfloat16*>(block + layout_.bf16_weights().count());
  }

  ParameterLayout layout_;
  float momentum_;
  float weight_decay_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SgdUpdate& op) {
  return std::make_unique<SgdUpdateKernel>(machine, op);
}

}  // namespace spillway::cuda
