#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"

namespace spillway::cuda {
namespace {

// The kernels below go over whole tensors: zeros, of which padding consists, stay zeros. An output
// may be one of the inputs, since each element depends on its own place only; so no pointer is
// __restrict__. A NaN is no negative number, so it stays and shows in the loss.

__device__ float rectified(float value) { return value < 0.F ? 0.F : value; }

template <class T>
__global__ void relu_forward(const T* x, T* y, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<T> pack = load(x, i);
#pragma unroll
    for (float& lane : pack.lanes) lane = rectified(lane);
    store(y, i, pack);
  }
}

template <class T>
__global__ void relu_backward(const T* y, const T* dy, T* dx, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    const Pack<T> output = load(y, i);
    Pack<T> gradient = load(dy, i);
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      if (!(output.lanes[l] > 0.F)) gradient.lanes[l] = 0.F;
    }
    store(dx, i, gradient);
  }
}

// P(X <= x) of a standard normal X. The complement of the error function keeps small ones exact.
__device__ float normal_below(float x) { return 0.5F * erfcf(-x * 0.707106781F); }

template <class T>
__global__ void gelu_forward(const T* x, T* y, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<T> pack = load(x, i);
#pragma unroll
    for (float& lane : pack.lanes) lane *= normal_below(lane);
    store(y, i, pack);
  }
}

template <class T>
__global__ void gelu_backward(const T* x, const T* dy, T* dx, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    const Pack<T> at = load(x, i);
    Pack<T> gradient = load(dy, i);
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      const float density = 0.398942280F * expf(-at.lanes[l] * at.lanes[l] / 2);
      gradient.lanes[l] *= normal_below(at.lanes[l]) + at.lanes[l] * density;
    }
    store(dx, i, gradient);
  }
}

template <class T, bool kRelu>
__global__ void add_forward(const T* a, const T* b, T* y, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<T> sum = load(a, i);
    const Pack<T> other = load(b, i);
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      sum.lanes[l] += other.lanes[l];
      if (kRelu) sum.lanes[l] = rectified(sum.lanes[l]);
    }
    store(y, i, sum);
  }
}

// The gradient before a ReLU whose output is y.
template <class T>
__global__ void add_gradients_of_relu(const T* a, const T* b, const T* y, T* d, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<T> sum = load(a, i);
    const Pack<T> other = load(b, i);
    const Pack<T> output = load(y, i);
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      sum.lanes[l] = output.lanes[l] > 0.F ? sum.lanes[l] + other.lanes[l] : 0.F;
    }
    store(d, i, sum);
  }
}

class ReluForwardKernel final : public CudaKernel {
 public:
  ReluForwardKernel(const Machine& machine, const ReluForward& op)
      : CudaKernel{machine, operand_count(op)}, shape_{op.x} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<ReluForward>(arguments.operands);
    with_element(machine().precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t packs = pack_count<T>(shape_);
      launch(stream(), packs, relu_forward<T>, tensor<T>(operands.in.x), tensor<T>(operands.out.y),
             packs);
    });
  }

  TensorShape shape_;
};

class ReluBackwardKernel final : public CudaKernel {
 public:
  ReluBackwardKernel(const Machine& machine, const ReluBackward& op)
      : CudaKernel{machine, operand_count(op)}, shape_{op.x} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<ReluBackward>(arguments.operands);
    with_element(machine().precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t packs = pack_count<T>(shape_);
      launch(stream(), packs, relu_backward<T>, tensor<T>(operands.in.y), tensor<T>(operands.in.dy),
             tensor<T>(operands.out.dx), packs);
    });
  }

  TensorShape shape_;
};

class GeluForwardKernel final : public CudaKernel {
 public:
  GeluForwardKernel(const Machine& machine, const GeluForward& op)
      : CudaKernel{machine, operand_count(op)}, shape_{op.x} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<GeluForward>(arguments.operands);
    with_element(machine().precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t packs = pack_count<T>(shape_);
      launch(stream(), packs, gelu_forward<T>, tensor<T>(operands.in.x), tensor<T>(operands.out.y),
             packs);
    });
  }

  TensorShape shape_;
};

class GeluBackwardKernel final : public CudaKernel {
 public:
  GeluBackwardKernel(const Machine& machine, const GeluBackward& op)
      : CudaKernel{machine, operand_count(op)}, shape_{op.x} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<GeluBackward>(arguments.operands);
    with_element(machine().precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t packs = pack_count<T>(shape_);
      launch(stream(), packs, gelu_backward<T>, tensor<T>(operands.in.x), tensor<T>(operands.in.dy),
             tensor<T>(operands.out.dx), packs);
    });
  }

  TensorShape shape_;
};

class AddForwardKernel final : public CudaKernel {
 public:
  AddForwardKernel(const Machine& machine, const AddForward& op)
      : CudaKernel{machine, operand_count(op)}, shape_{op.x}, relu_{op.relu} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<AddForward>(arguments.operands);
    with_element(machine().precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t packs = pack_count<T>(shape_);
      launch(stream(), packs, relu_ ? add_forward<T, true> : add_forward<T, false>,
             tensor<T>(operands.in.a), tensor<T>(operands.in.b), tensor<T>(operands.out.y), packs);
    });
  }

  TensorShape shape_;
  bool relu_;
};

class AddGradientsKernel final : public CudaKernel {
 public:
  AddGradientsKernel(const Machine& machine, const AddGradients& op)
      : CudaKernel{machine, operand_count(op)}, op_{op} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of(op_, arguments.operands);
    with_element(machine().precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t packs = pack_count<T>(op_.x);
      T* const a = tensor<T>(operands.in.a);
      T* const b = tensor<T>(operands.in.b);
      T* const d = tensor<T>(operands.out.d);
      if (op_.relu) {
        launch(stream(), packs, add_gradients_of_relu<T>, a, b, tensor<T>(operands.in.y), d, packs);
      } else {
        launch(stream(), packs, add_forward<T, false>, a, b, d, packs);
      }
    });
  }

  AddGradients op_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluForward& op) {
  return std::make_unique<ReluForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluBackward& op) {
  return std::make_unique<ReluBackwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluForward& op) {
  return std::make_unique<GeluForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluBackward& op) {
  return std::make_unique<GeluBackwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddForward& op) {
  return std::make_unique<AddForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddGradients& op) {
  return std::make_unique<AddGradientsKernel>(machine, op);
}

}  // namespace spillway::cuda
