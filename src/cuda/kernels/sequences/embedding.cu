#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Returns true if the number is a row of the table; false for a NaN.
__device__ bool is_row(float token, std::size_t vocabulary) {
  return token >= 0.F && token < static_cast<float>(vocabulary);
}

template <class T>
__global__ void embed(const float* tokens, const float* table, T* y, TokenMatrix m,
                      std::size_t vocabulary) {
  for (std::size_t i = first_item(); i < m.elements(); i += item_stride()) {
    const std::size_t channel = i % m.stride;
    const float token = tokens[i / m.stride];
    float value = channel < m.channels ? NAN : 0.F;
    if (is_row(token, vocabulary)) {
      value = table[static_cast<std::size_t>(token) * m.stride + channel];
    }
    store_one(y, i, value);
  }
}

__global__ void clear(float* table, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) table[i] = 0.F;
}

// One block per token. The first token with a number sums the gradients of all tokens with that
// number, in order.
template <class T>
__global__ void add_rows(const float* tokens, const T* dy, float* table, TokenMatrix m,
                         std::size_t vocabulary) {
  for (std::size_t i = blockIdx.x; i < m.rows; i += gridDim.x) {
    const float token = tokens[i];
    bool is_first = is_row(token, vocabulary);
    for (std::size_t j = 0; j < i && is_first; ++j) is_first = tokens[j] != token;
    if (!is_first) continue;
    float* const row = table + static_cast<std::size_t>(token) * m.stride;
    for (std::size_t c = threadIdx.x; c < m.channels; c += blockDim.x) {
      float sum = row[c];
      for (std::size_t j = i; j < m.rows; ++j) {
        if (tokens[j] == token) sum += load_one(dy, j * m.stride + c);
      }
      row[c] = sum;
    }
  }
}

// The tokens of a sequence, with `skipped` tokens before the pixels. Pixels and tokens have the
// same memory layout.
struct Skip {
  std::size_t skipped;
  std::size_t pixels;

  [[nodiscard]] constexpr std::size_t tokens() const { return skipped + pixels; }
};

// `token` is the value of the skipped tokens; null if there are none.
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

// Sums the first tokens of all sequences, in order.
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

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingForward& op) {
  return kernel_of(op, [machine, op, m = token_matrix(op.y)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.elements(), embed<T>, tensor<const float>(operands.in.tokens),
             tensor<const float>(operands.in.parameters), tensor<T>(operands.out.y), m,
             op.vocabulary);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingBackward& op) {
  const ParameterLayout layout{machine.precision, op.forward().parameters()};
  const auto add = [machine, op, layout, m = token_matrix(op.y)](const auto& operands) {
    float* const table = tensor<float>(operands.out.dparameters);
    if (!op.accumulates) {
      launch(machine.stream, layout.float_count(), clear, table, layout.float_count());
    }
    with_element(machine.precision, [&]<class T>(T) {
      const std::size_t blocks = std::min(m.rows, kMaxBlocks);
      enqueue(machine.stream,
              {.blocks = dim3{static_cast<unsigned>(blocks)}, .threads = dim3{kThreads}},
              add_rows<T>, tensor<const float>(operands.in.tokens), tensor<const T>(operands.in.dy),
              table, m, op.vocabulary);
    });
  };
  return kernel_of(op, add);
}

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
