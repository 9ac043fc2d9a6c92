#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/token_matrix.h"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Tokens of a sequence, of which the first `skipped` are no pixels: pixels lie in memory as tokens
// do.
struct Skip {
  std::size_t skipped;
  std::size_t pixels;

  [[nodiscard]] constexpr std::size_t tokens() const { return skipped + pixels; }
};

// The first tokens are `token`, null where there are none.
template <class T>
__global__ void pixels_to_tokens(const T* x, const float* token, T* y, Skip skip, TokenMatrix m) {
  for (std::size_t i = first_item(); i < m.elements(); i += item_stride()) {
    const std::size_t channel = i % m.stride;
    const std::size_t place = i / m.stride % skip.tokens();
    const std::size_t n = i / m.stride / skip.tokens();
    if (place < skip.skipped) {
      store_one(y, i, token[channel]);
    } else {
      const std::size_t pixel = n * skip.pixels + place - skip.skipped;
      store_one(y, i, load_one(x, pixel * m.stride + channel));
    }
  }
}

template <class T>
__global__ void tokens_to_pixels(const T* dy, T* dx, Skip skip, TokenMatrix m,
                                 std::size_t elements) {
  for (std::size_t i = first_item(); i < elements; i += item_stride()) {
    const std::size_t pixel = i / m.stride;
    const std::size_t row =
        pixel / skip.pixels * skip.tokens() + skip.skipped + pixel % skip.pixels;
    store_one(dx, i, load_one(dy, row * m.stride + i % m.stride));
  }
}

// Of the first tokens of all sequences, in their order.
template <class T>
__global__ void sum_first(const T* dy, float* sums, TokenMatrix m) {
  for (std::size_t c = first_item(); c < m.stride; c += item_stride()) {
    float sum = 0.F;
    for (std::size_t row = 0; row < m.rows; row += m.tokens) {
      sum += load_one(dy, row * m.stride + c);
    }
    sums[c] = sum;
  }
}

template <class T>
__global__ void take_first(const T* x, T* y, TokenMatrix m, std::size_t elements) {
  for (std::size_t i = first_item(); i < elements; i += item_stride()) {
    const std::size_t row = i / m.stride * m.tokens;
    store_one(y, i, load_one(x, row * m.stride + i % m.stride));
  }
}

template <class T>
__global__ void spread_first(const T* dy, T* dx, TokenMatrix m) {
  for (std::size_t i = first_item(); i < m.elements(); i += item_stride()) {
    const std::size_t row = i / m.stride;
    const bool is_first = row % m.tokens == 0;
    store_one(dx, i, is_first ? load_one(dy, row / m.tokens * m.stride + i % m.stride) : 0.F);
  }
}

Skip skip_of(const ImageTokensForward& op) {
  return {.skipped = op.class_token ? 1U : 0U, .pixels = op.x.image.height * op.x.image.width};
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ImageTokensForward& op) {
  return kernel_of(op, [machine, op, m = token_matrix(op.y())](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.elements(), pixels_to_tokens<T>, tensor<const T>(operands.in.x),
             tensor<const float>(operands.in.parameters), tensor<T>(operands.out.y), skip_of(op),
             m);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ImageTokensBackward& op) {
  const TokenMatrix tokens = token_matrix(op.forward().y());
  return kernel_of(op, [machine, op, m = tokens](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      const T* const dy = tensor<const T>(operands.in.dy);
      const std::size_t elements = Layout::elements(op.x);
      launch(machine.stream, elements, tokens_to_pixels<T>, dy, tensor<T>(operands.out.dx),
             skip_of(op.forward()), m, elements);
      if (!op.class_token) return;
      launch(machine.stream, m.stride, sum_first<T>, dy, tensor<float>(operands.out.dparameters),
             m);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const FirstTokenForward& op) {
  return kernel_of(op, [machine, op, m = token_matrix(op.x)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      const std::size_t elements = op.x.batch * m.stride;
      launch(machine.stream, elements, take_first<T>, tensor<const T>(operands.in.x),
             tensor<T>(operands.out.y), m, elements);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const FirstTokenBackward& op) {
  return kernel_of(op, [machine, m = token_matrix(op.x)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.elements(), spread_first<T>, tensor<const T>(operands.in.dy),
             tensor<T>(operands.out.dx), m);
    });
  });
}

}  // namespace spillway::cuda
