#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "src/cuda/kernels/channel_tile.cuh"
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

// Each warp handles one row at a time.
template <class T>
__global__ void embed(const float* tokens, const float* table, T* y, TokenMatrix m,
                      std::size_t vocabulary) {
  const std::size_t groups = m.stride / kGroupLanes;
  for (std::size_t row = first_item() / kWarp; row < m.rows; row += item_stride() / kWarp) {
    const float token = tokens[row];
    const bool is_inside = is_row(token, vocabulary);
    for (std::size_t g = threadIdx.x % kWarp; g < groups; g += kWarp) {
      Group values;
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) {
        values.lanes[l] = g * kGroupLanes + l < m.channels ? NAN : 0.F;
      }
      if (is_inside) values = load_group(table, static_cast<std::size_t>(token) * groups + g);
      store_group(y, row * groups + g, values);
    }
  }
}

__global__ void clear(float* table, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) table[i] = 0.F;
}

// A token and its place in the batch. What is not a row of the table has the number behind the last
// row, and so the last places.
struct alignas(8) PlacedToken {
  std::uint32_t token;
  std::uint32_t place;
};

// Threads of sort_tokens(), and the digits of its numbers.
constexpr unsigned kSortThreads = 512;
constexpr unsigned kDigitBits = 4;
constexpr unsigned kDigits = 1U << kDigitBits;

// Replaces the kDigits numbers of each thread by the sum of all numbers before them. All threads of
// the block must call it, and must have written their numbers before a barrier.
__device__ void add_up_before(unsigned* numbers) {
  __shared__ unsigned sums[kSortThreads];
  unsigned* const own = numbers + threadIdx.x * kDigits;
  unsigned sum = 0;
  for (unsigned d = 0; d < kDigits; ++d) sum += own[d];
  sums[threadIdx.x] = sum;
  for (unsigned distance = 1; distance < kSortThreads; distance *= 2) {
    __syncthreads();
    const unsigned before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0U;
    __syncthreads();
    sums[threadIdx.x] += before;
  }
  unsigned before = sums[threadIdx.x] - sum;
  for (unsigned d = 0; d < kDigits; ++d) {
    const unsigned number = own[d];
    own[d] = before;
    before += number;
  }
  __syncthreads();
}

// Sorts tokens by number; equal ones keep their order. One block sorts by one digit in each pass,
// lowest first. Pass 0 writes `even`, pass 1 `odd`, and so on. Each thread has a stretch of tokens.
__global__ void __launch_bounds__(kSortThreads)
    sort_tokens(const float* tokens, PlacedToken* even, PlacedToken* odd, std::size_t count,
                std::size_t vocabulary, unsigned passes) {
  __shared__ unsigned starts[kDigits * kSortThreads];  // by digit, then by thread
  const std::size_t each = (count + kSortThreads - 1) / kSortThreads;
  const std::size_t begin = min(threadIdx.x * each, count);
  const std::size_t end = min(begin + each, count);
  for (unsigned pass = 0; pass < passes; ++pass) {
    const PlacedToken* const from = pass % 2 == 0 ? odd : even;
    PlacedToken* const to = pass % 2 == 0 ? even : odd;
    const auto get = [&](std::size_t i) {
      if (pass > 0) return from[i];
      const float token = tokens[i];
      const auto number = is_row(token, vocabulary) ? static_cast<std::uint32_t>(token)
                                                    : static_cast<std::uint32_t>(vocabulary);
      return PlacedToken{.token = number, .place = static_cast<std::uint32_t>(i)};
    };
    const auto start_of = [&](const PlacedToken& token) -> unsigned& {
      const unsigned digit = token.token >> (pass * kDigitBits) & (kDigits - 1);
      return starts[digit * kSortThreads + threadIdx.x];
    };
    for (unsigned d = 0; d < kDigits; ++d) starts[d * kSortThreads + threadIdx.x] = 0;
    for (std::size_t i = begin; i < end; ++i) ++start_of(get(i));
    __syncthreads();
    add_up_before(starts);
    for (std::size_t i = begin; i < end; ++i) {
      const PlacedToken token = get(i);
      to[start_of(token)++] = token;
    }
    __syncthreads();
  }
}

// Channels that a warp sums together: a group for each lane.
constexpr std::size_t kSliceGroups = kWarp;

// Many equal tokens are added up in chunks, by a warp each. Chunks end at multiples of this number,
// and the first one has at least that number of tokens.
constexpr std::size_t kChunkTokens = 64;

__device__ std::size_t end_of_first_chunk(std::size_t first) {
  return (first + 2 * kChunkTokens - 1) / kChunkTokens * kChunkTokens;
}

// A sorted token begins its number, begins a further chunk of equal tokens, or neither.
enum class Begins : std::uint8_t { kNothing, kNumber, kChunk };
__device__ Begins begins_at(const PlacedToken* sorted, std::size_t i) {
  const std::uint32_t token = sorted[i].token;
  if (i == 0 || sorted[i - 1].token != token) return Begins::kNumber;
  const bool is_chunk = i % kChunkTokens == 0 && sorted[i - kChunkTokens].token == token;
  return is_chunk ? Begins::kChunk : Begins::kNothing;
}

// Returns the row for the sums of the chunk that begins at the `i`th sorted token.
__device__ std::size_t part_of_chunk(std::size_t i, std::size_t groups) {
  return i / kChunkTokens * groups;
}

// A warp for each sorted token and slice of channels. The first one of equal tokens adds the
// gradients of a chunk of them to the table's row, in their order; the first one of each further
// chunk adds those up in `parts`.
template <class T>
__global__ void add_rows(const PlacedToken* sorted, const T* dy, float* table, float* parts,
                         TokenMatrix m, std::size_t vocabulary) {
  const std::size_t lane = threadIdx.x % kWarp;
  const std::size_t groups = m.stride / kGroupLanes;
  const std::size_t slices = (groups + kSliceGroups - 1) / kSliceGroups;
  for (std::size_t i = first_item() / kWarp; i < m.rows * slices; i += item_stride() / kWarp) {
    const std::size_t first = i / slices;
    const std::size_t group = i % slices * kSliceGroups + lane;
    const std::uint32_t token = sorted[first].token;
    if (token >= vocabulary) continue;
    const Begins begins = begins_at(sorted, first);
    if (begins == Begins::kNothing) continue;
    const bool is_inside = group < groups;
    const bool is_first = begins == Begins::kNumber;
    Group sum{};
    if (is_inside && is_first) sum = load_group(table, token * groups + group);
    const std::size_t end =
        min(is_first ? end_of_first_chunk(first) : first + kChunkTokens, m.rows);
    for (std::size_t begin = first, found = kWarp; begin < end && found == kWarp; begin += kWarp) {
      PlacedToken own{.token = token + 1, .place = 0};
      if (begin + lane < end) own = sorted[begin + lane];
      found = warp_sum(own.token == token ? 1U : 0U);  // equal tokens stand together
#pragma unroll 8
      for (unsigned j = 0; j < found; ++j) {
        const std::size_t place = __shfl_sync(kAllLanes, own.place, j);
        if (!is_inside) continue;
        const Group gradient = load_group(dy, place * groups + group);
#pragma unroll
        for (int l = 0; l < kGroupLanes; ++l) sum.lanes[l] += gradient.lanes[l];
      }
    }
    if (!is_inside) continue;
    if (is_first) {
      store_group(table, token * groups + group, sum);
    } else {
      store_group(parts, part_of_chunk(first, groups) + group, sum);
    }
  }
}

// A warp for each sorted token and slice of channels. The first one of tokens that have further
// chunks adds what these have added up to the table's row, in their order.
__global__ void add_parts(const PlacedToken* sorted, const float* parts, float* table,
                          TokenMatrix m, std::size_t vocabulary) {
  const std::size_t groups = m.stride / kGroupLanes;
  const std::size_t slices = (groups + kSliceGroups - 1) / kSliceGroups;
  for (std::size_t i = first_item() / kWarp; i < m.rows * slices; i += item_stride() / kWarp) {
    const std::size_t first = i / slices;
    const std::size_t group = i % slices * kSliceGroups + threadIdx.x % kWarp;
    const std::uint32_t token = sorted[first].token;
    if (token >= vocabulary || group >= groups) continue;
    if (begins_at(sorted, first) != Begins::kNumber) continue;
    std::size_t at = end_of_first_chunk(first);
    if (at >= m.rows || sorted[at].token != token) continue;
    Group sum = load_group(table, token * groups + group);
    for (; at < m.rows && sorted[at].token == token; at += kChunkTokens) {
      const Group part = load_group(parts, part_of_chunk(at, groups) + group);
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) sum.lanes[l] += part.lanes[l];
    }
    store_group(table, token * groups + group, sum);
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
      launch(machine.stream, m.rows * kWarp, embed<T>, tensor<const float>(operands.in.tokens),
             tensor<const float>(operands.in.parameters), tensor<T>(operands.out.y), m,
             op.vocabulary);
    });
  });
}

namespace {

// The workspace holds the tokens twice, then a row for what each chunk adds up.
um::Bytes placed_tokens(const TokenMatrix& m) {
  constexpr um::Bytes kAlignment{256};
  return um::round_up(um::Bytes{2 * m.rows * sizeof(PlacedToken)}, kAlignment);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingBackward& op) {
  const ParameterLayout layout{machine.precision, op.forward().parameters()};
  const auto add = [machine, op, layout, m = token_matrix(op.y)](const auto& operands,
                                                                 const auto& arguments) {
    float* const table = tensor<float>(operands.out.dparameters);
    if (!op.accumulates) {
      launch(machine.stream, layout.float_count(), clear, table, layout.float_count());
    }
    auto* const even = tensor<PlacedToken>(arguments.workspace);
    PlacedToken* const odd = even + m.rows;
    const auto bits = static_cast<unsigned>(std::bit_width(op.vocabulary));
    const unsigned passes = (bits + kDigitBits - 1) / kDigitBits;
    enqueue(machine.stream, {.blocks = dim3{1}, .threads = dim3{kSortThreads}}, sort_tokens,
            tensor<const float>(operands.in.tokens), even, odd, m.rows, op.vocabulary, passes);
    const PlacedToken* const sorted = passes % 2 == 0 ? odd : even;
    auto* const parts = tensor<float>(arguments.workspace + placed_tokens(m).count());
    const std::size_t slices = (m.stride / kGroupLanes + kSliceGroups - 1) / kSliceGroups;
    const std::size_t items = m.rows * slices * kWarp;
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, items, add_rows<T>, sorted, tensor<const T>(operands.in.dy), table,
             parts, m, op.vocabulary);
    });
    if (m.rows > kChunkTokens) {
      launch(machine.stream, items, add_parts, sorted, parts, table, m, op.vocabulary);
    }
  };
  return kernel_of(op, add);
}

um::Bytes workspace_of(const Machine& /*machine*/, const EmbeddingBackward& op) {
  const TokenMatrix m = token_matrix(op.y);
  const std::size_t chunks = (m.rows + kChunkTokens - 1) / kChunkTokens;
  return placed_tokens(m) + um::Bytes{chunks * m.stride * sizeof(float)};
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
