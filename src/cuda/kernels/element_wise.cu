#include "src/cuda/kernels/channel_tile.cuh"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/row_walk.cuh"
#include "src/cuda/layout/step_numbers.h"
#include "src/ops/dropout_mask.h"

namespace spillway::cuda {
namespace {

// The kernels below run over whole tensors, since padding consists of zeros and they stay zeros. An
// output may be an input, since each element depends only on its own position; therefore no pointer
// is __restrict__. A NaN is not negative, so it stays and shows in the loss.

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

// P(X <= x) of a standard normal X. The complementary error function keeps small values accurate.
__device__ float normal_below(float x) { return 0.5F * erfcf(-x * 0.707106781F); }

// Each struct has the function and its derivative.
struct GeluByErrorFunction {
  __device__ static float value(float x) { return x * normal_below(x); }
  __device__ static float slope(float x) {
    const float density = 0.398942280F * expf(-x * x / 2);
    return normal_below(x) + x * density;
  }
};
struct GeluByTanh {
  __device__ static float tanh_of(float x) {
    return tanhf(0.797884561F * (x + 0.044715F * x * x * x));
  }
  __device__ static float value(float x) { return 0.5F * x * (1.F + tanh_of(x)); }
  __device__ static float slope(float x) {
    const float t = tanh_of(x);
    const float inner = 0.797884561F * (1.F + 3.F * 0.044715F * x * x);
    return 0.5F * (1.F + t) + 0.5F * x * (1.F - t * t) * inner;
  }
};

template <class T, class Function>
__global__ void gelu_forward(const T* x, T* y, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<T> pack = load(x, i);
#pragma unroll
    for (float& lane : pack.lanes) lane = Function::value(lane);
    store(y, i, pack);
  }
}

template <class T, class Function>
__global__ void gelu_backward(const T* x, const T* dy, T* dx, std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    const Pack<T> at = load(x, i);
    Pack<T> gradient = load(dy, i);
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      gradient.lanes[l] *= Function::slope(at.lanes[l]);
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

// y = max(0, a + b). mask: a byte per group; bit l is set if lane l of y is positive.
template <class T>
__global__ void add_with_mask(const T* a, const T* b, T* y, std::uint8_t* __restrict__ mask,
                              std::size_t groups) {
  for (std::size_t i = first_item(); i < groups; i += item_stride()) {
    Group sum = load_group(a, i);
    const Group other = load_group(b, i);
    unsigned positive = 0;
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      sum.lanes[l] = rectified(sum.lanes[l] + other.lanes[l]);
      if (as_stored<T>(sum.lanes[l]) > 0.F) positive |= 1U << l;
    }
    store_group(y, i, sum);
    mask[i] = static_cast<std::uint8_t>(positive);
  }
}

// dx = dy where the mask's bit is set, otherwise zero.
template <class T>
__global__ void relu_backward_by_mask(const std::uint8_t* __restrict__ mask, const T* dy, T* dx,
                                      std::size_t groups) {
  for (std::size_t i = first_item(); i < groups; i += item_stride()) {
    Group gradient = load_group(dy, i);
    const unsigned positive = mask[i];
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      if ((positive >> l & 1U) == 0U) gradient.lanes[l] = 0.F;
    }
    store_group(dx, i, gradient);
  }
}

// d = a + b where the mask's bit is set or the mask is null, otherwise zero. Also writes `copy`
// unless it is null.
template <class T>
__global__ void add_masked(const T* a, const T* b, const std::uint8_t* __restrict__ mask, T* d,
                           T* copy, std::size_t groups) {
  for (std::size_t i = first_item(); i < groups; i += item_stride()) {
    Group sum = load_group(a, i);
    const Group other = load_group(b, i);
    const unsigned positive = mask == nullptr ? ~0U : mask[i];
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) {
      sum.lanes[l] = (positive >> l & 1U) != 0U ? sum.lanes[l] + other.lanes[l] : 0.F;
    }
    store_group(d, i, sum);
    if (copy != nullptr) store_group(copy, i, sum);
  }
}

// Computes the gradient of the input of a ReLU with output y. Also writes `copy` unless it is null.
template <class T>
__global__ void add_gradients_of_relu(const T* a, const T* b, const T* y, T* d, T* copy,
                                      std::size_t packs) {
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    Pack<T> sum = load(a, i);
    const Pack<T> other = load(b, i);
    const Pack<T> output = load(y, i);
#pragma unroll
    for (int l = 0; l < Pack<T>::kLanes; ++l) {
      sum.lanes[l] = output.lanes[l] > 0.F ? sum.lanes[l] + other.lanes[l] : 0.F;
    }
    store(d, i, sum);
    if (copy != nullptr) store(copy, i, sum);
  }
}

std::size_t group_count(const TensorShape& shape) {
  return Layout::elements(shape) / Layout::kChannelBlock;
}

// Returns a kernel that calls enqueue(T{}, operands, start) with the elements' type. start(kernel,
// tensors...) enqueues a device kernel over all packs.
template <class Op, class Enqueue>
std::unique_ptr<Kernel> element_wise(const Machine& machine, const Op& op, Enqueue enqueue) {
  const auto body = [machine, shape = op.x, enqueue](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T element) {
      enqueue(element, operands, [&](auto kernel, auto... tensors) {
        const std::size_t packs = pack_count<T>(shape);
        launch(machine.stream, packs, kernel, tensors..., packs);
      });
    });
  };
  return kernel_of(op, body);
}

// Like element_wise(), but over all groups.
template <class Op, class Enqueue>
std::unique_ptr<Kernel> group_wise(const Machine& machine, const Op& op, Enqueue enqueue) {
  const std::size_t groups = group_count(op.x);
  const auto body = [machine, groups, enqueue](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T element) {
      enqueue(element, operands, [&](auto kernel, auto... tensors) {
        launch(machine.stream, groups, kernel, tensors..., groups);
      });
    });
  };
  return kernel_of(op, body);
}

template <class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    bias_relu_rows(ChannelMatrix matrix, ChannelTiling tiling, T* y, const float* __restrict__ bias,
                   bool relu) {
  __shared__ TileChannels<1> channels;
  fill_channels(channels, matrix, [&](std::size_t channel) {
    return ChannelNumbers<1>{{bias != nullptr ? bias[channel] : 0.F}};
  });
  for_each_row<kRowsAhead<T>>(
      row_walk(matrix, tiling), [&](std::size_t at) { return load_raw(y, at); },
      [&](auto& rows) {
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
          const Quad added = channels.quad(0, q);
#pragma unroll
          for (RawGroup<T>& row : rows) {
            Quad values = get_quad(row, q);
#pragma unroll
            for (int l = 0; l < 4; ++l) {
              const float sum = values.lanes[l] + added.lanes[l];
              values.lanes[l] = relu && sum < 0.F ? 0.F : sum;  // a NaN stays a NaN
            }
            set_quad(row, q, values);
          }
        }
      },
      [&](std::size_t at, const RawGroup<T>& row) { store_raw(y, at, row); });
}

__global__ void widen_groups(const __nv_bfloat16* __restrict__ from, float* __restrict__ to,
                             std::size_t groups) {
  for (std::size_t i = first_item(); i < groups; i += item_stride()) {
    store_group(to, i, load_group(from, i));
  }
}

// Forward and backward are the same: x times the mask. Padding is zero and stays zero, whatever is
// drawn for it. y may be x.
template <class T>
__global__ void dropout(const T* x, T* y, const DropoutMask* step_mask,
                        std::uint32_t packs_of_pixel, std::size_t packs) {
  const DropoutMask mask = *step_mask;
  constexpr int kGroups = Pack<T>::kLanes / DropoutMask::kGroup;  // 2 for bfloat16, 1 for float
  for (std::size_t i = first_item(); i < packs; i += item_stride()) {
    const std::size_t pixel = i / packs_of_pixel;
    const std::size_t group = i % packs_of_pixel * kGroups;
    Pack<T> pack = load(x, i);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const PhiloxCounter words = mask.words(pixel, group + g);
#pragma unroll
      for (int c = 0; c < static_cast<int>(DropoutMask::kGroup); ++c) {
        float& lane = pack.lanes[g * static_cast<int>(DropoutMask::kGroup) + c];
        lane = mask.apply(words[c], lane);
      }
    }
    store(y, i, pack);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluForward& op) {
  return element_wise(machine, op, []<class T>(T, const auto& operands, const auto& start) {
    start(relu_forward<T>, tensor<T>(operands.in.x), tensor<T>(operands.out.y));
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluBackward& op) {
  if (op.by_mask) {
    return group_wise(machine, op, []<class T>(T, const auto& operands, const auto& start) {
      start(relu_backward_by_mask<T>, tensor<std::uint8_t>(operands.in.y),
            tensor<T>(operands.in.dy), tensor<T>(operands.out.dx));
    });
  }
  return element_wise(machine, op, []<class T>(T, const auto& operands, const auto& start) {
    start(relu_backward<T>, tensor<T>(operands.in.y), tensor<T>(operands.in.dy),
          tensor<T>(operands.out.dx));
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluForward& op) {
  const auto apply = [tanh = op.tanh]<class T>(T, const auto& operands, const auto& start) {
    start(tanh ? gelu_forward<T, GeluByTanh> : gelu_forward<T, GeluByErrorFunction>,
          tensor<T>(operands.in.x), tensor<T>(operands.out.y));
  };
  return element_wise(machine, op, apply);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluBackward& op) {
  const auto apply = [tanh = op.tanh]<class T>(T, const auto& operands, const auto& start) {
    start(tanh ? gelu_backward<T, GeluByTanh> : gelu_backward<T, GeluByErrorFunction>,
          tensor<T>(operands.in.x), tensor<T>(operands.in.dy), tensor<T>(operands.out.dx));
  };
  return element_wise(machine, op, apply);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddForward& op) {
  if (op.saves_mask) {
    return group_wise(machine, op, []<class T>(T, const auto& operands, const auto& start) {
      start(add_with_mask<T>, tensor<T>(operands.in.a), tensor<T>(operands.in.b),
            tensor<T>(operands.out.y), tensor<std::uint8_t>(operands.out.mask));
    });
  }
  const auto add = [relu = op.relu]<class T>(T, const auto& operands, const auto& start) {
    start(relu ? add_forward<T, true> : add_forward<T, false>, tensor<T>(operands.in.a),
          tensor<T>(operands.in.b), tensor<T>(operands.out.y));
  };
  return element_wise(machine, op, add);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddGradients& op) {
  if (op.by_mask || (op.twice && !op.relu)) {
    return group_wise(machine, op, []<class T>(T, const auto& operands, const auto& start) {
      start(add_masked<T>, tensor<T>(operands.in.a), tensor<T>(operands.in.b),
            tensor<std::uint8_t>(operands.in.y), tensor<T>(operands.out.d),
            tensor<T>(operands.out.copy));
    });
  }
  const auto add = [relu = op.relu]<class T>(T, const auto& operands, const auto& start) {
    T* const a = tensor<T>(operands.in.a);
    T* const b = tensor<T>(operands.in.b);
    T* const d = tensor<T>(operands.out.d);
    if (relu) {
      start(add_gradients_of_relu<T>, a, b, tensor<T>(operands.in.y), d,
            tensor<T>(operands.out.copy));
    } else {
      start(add_forward<T, false>, a, b, d);
    }
  };
  return element_wise(machine, op, add);
}

um::Bytes saved_bytes(const Machine& /*machine*/, const AddForward& op) {
  return um::Bytes{op.saves_mask ? group_count(op.x) : 0};
}

void add_bias_relu(const Machine& machine, const ChannelMatrix& matrix, std::byte* y,
                   const float* bias, bool relu) {
  if (bias == nullptr && !relu) return;
  with_element(machine.precision, [&](auto element) {
    using T = decltype(element);
    launch_tiles(machine.stream, matrix, bias_relu_rows<T>, reinterpret_cast<T*>(y), bias, relu);
  });
}

void widen(const Machine& machine, std::size_t count, const std::byte* from, float* to) {
  const std::size_t groups = count / Layout::kChannelBlock;
  launch(machine.stream, groups, widen_groups, reinterpret_cast<const __nv_bfloat16*>(from), to,
         groups);
}

// Forward and backward are the same: x (or dy) times the mask.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutForward& op) {
  auto mask = machine.numbers->add([op](const StepContext& context) {
    return dropout_mask(op.x.image, op.probability, op.stream, op.first_sample, context);
  });
  auto apply = [machine, op, mask = std::move(mask)](const auto& operands) {
    with_element(machine.precision, [&](auto element) {
      using T = decltype(element);
      const std::size_t of_pixel = Layout::padded(op.x.image.channels) / Pack<T>::kLanes;
      const std::size_t packs = pack_count<T>(op.x);
      launch(machine.stream, packs, dropout<T>, tensor<T>(operands.in.x), tensor<T>(operands.out.y),
             mask.get(), static_cast<std::uint32_t>(of_pixel), packs);
    });
  };
  return kernel_of(op, std::move(apply));
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutBackward& op) {
  return make_kernel(machine, forward_of(op));
}

}  // namespace spillway::cuda
