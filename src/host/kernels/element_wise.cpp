#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "src/host/kernels/kernels.h"
#include "src/ops/dropout_mask.h"
#include "src/ops/tensor.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace spillway::host {
namespace {

// Number of elements per mask byte, fewer only in a tensor's last byte; bit l belongs to element l.
// The functions below read all elements before they write the first, so an output may be an input.
//
// No branch depends on an element's value. Compilers made such branches, which are slow on values
// of mixed sign: sums took 3.6 times as long, and gradients 2.1 times.
constexpr std::size_t kBits = 8;

#ifdef __SSE2__
/// Eight floats.
struct Lanes {
  __m128 low;
  __m128 high;
};
Lanes load_lanes(const float* numbers) {
  return {.low = _mm_loadu_ps(numbers), .high = _mm_loadu_ps(numbers + 4)};
}
Lanes load_lanes(const Bfloat16* numbers) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers));
  const __m128i zero = _mm_setzero_si128();
  return {.low = _mm_castsi128_ps(_mm_unpacklo_epi16(zero, halves)),
          .high = _mm_castsi128_ps(_mm_unpackhi_epi16(zero, halves))};
}
void store_lanes(const Lanes& lanes, float* numbers) {
  _mm_storeu_ps(numbers, lanes.low);
  _mm_storeu_ps(numbers + 4, lanes.high);
}
/// Rounds as Bfloat16 does; the results are in the lower halves.
__m128i round_lanes(__m128 numbers) {
  const __m128i bits = _mm_castps_si128(numbers);
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i up = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7FFF)));
  const __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(numbers, numbers));
  const __m128i kept =
      _mm_or_si128(_mm_and_si128(nan, _mm_set1_epi32(0x7FFF0000)), _mm_andnot_si128(nan, up));
  return _mm_srai_epi32(kept, 16);
}
void store_lanes(const Lanes& lanes, Bfloat16* numbers) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(numbers),
                   _mm_packs_epi32(round_lanes(lanes.low), round_lanes(lanes.high)));
}
Lanes sum_lanes(const Lanes& a, const Lanes& b) {
  return {.low = _mm_add_ps(a.low, b.low), .high = _mm_add_ps(a.high, b.high)};
}

/// Returns all ones for each of four floats with its bit set, starting with bit `first`.
__m128 set_lanes(unsigned bits, unsigned first) {
  const __m128i lane = _mm_set_epi32(8, 4, 2, 1);
  const __m128i all = _mm_set1_epi32(static_cast<int>(bits >> first));
  return _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_and_si128(all, lane), lane));
}
Lanes masked_lanes(const Lanes& numbers, unsigned bits) {
  return {.low = _mm_and_ps(set_lanes(bits, 0), numbers.low),
          .high = _mm_and_ps(set_lanes(bits, 4), numbers.high)};
}
#endif

/// y = max(0, a + b). A NaN is not negative, so it stays. Returns the mask byte: a bit per element
/// of y that is positive.
template <class T>
[[nodiscard]] std::uint8_t add_rectified(const T* a, const T* b, T* y, std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    const __m128 zero = _mm_setzero_ps();  // for two zeros or a NaN, max returns its second operand
    const Lanes sum = sum_lanes(load_lanes(a), load_lanes(b));
    const Lanes kept{.low = _mm_max_ps(zero, sum.low), .high = _mm_max_ps(zero, sum.high)};
    store_lanes(kept, y);
    const int above = _mm_movemask_ps(_mm_cmpgt_ps(kept.low, zero)) +
                      16 * _mm_movemask_ps(_mm_cmpgt_ps(kept.high, zero));
    return static_cast<std::uint8_t>(above);
  }
#endif
  std::array<float, kBits> sums;
  for (std::size_t l = 0; l < count; ++l) {
    const float sum = a[l] + b[l];
    sums[l] = sum < 0.F ? 0.F : sum;
  }
  unsigned bits = 0;
  for (std::size_t l = 0; l < count; ++l) {
    y[l] = sums[l];
    bits |= static_cast<unsigned>(sums[l] > 0.F) << l;
  }
  return static_cast<std::uint8_t>(bits);
}

/// d = copy = a + b where the bit is set, otherwise zero. `copy` may be d.
template <class T>
void add_masked(const T* a, const T* b, unsigned bits, T* d, T* copy, std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    const Lanes kept = masked_lanes(sum_lanes(load_lanes(a), load_lanes(b)), bits);
    store_lanes(kept, d);
    store_lanes(kept, copy);
    return;
  }
#endif
  std::array<float, kBits> sums;
  for (std::size_t l = 0; l < count; ++l) {
    const float sum = a[l] + b[l];
    sums[l] = (bits >> l & 1U) != 0U ? sum : 0.F;
  }
  for (std::size_t l = 0; l < count; ++l) {
    d[l] = sums[l];
    copy[l] = sums[l];
  }
}

/// d = a where the bit is set, otherwise zero.
template <class T>
void keep_masked(const T* a, unsigned bits, T* d, std::size_t count) {
#ifdef __SSE2__
  if (count == kBits) {
    store_lanes(masked_lanes(load_lanes(a), bits), d);
    return;
  }
#endif
  for (std::size_t l = 0; l < count; ++l) {
    const float number = a[l];
    d[l] = (bits >> l & 1U) != 0U ? number : 0.F;
  }
}

template <class Gelu>
dnnl::algorithm function_of(const Gelu& op) {
  return op.tanh ? dnnl::algorithm::eltwise_gelu_tanh : dnnl::algorithm::eltwise_gelu_erf;
}

// Describes all elements of a tensor, padding included.
template <class Op>
Desc numbers_of(const Machine& machine, const Op& op) {
  return machine.layout.dense_desc({machine.layout.elements(op.x)});
}

std::uint8_t* mask_at(std::byte* operand) { return reinterpret_cast<std::uint8_t*>(operand); }

// Calls body(mask byte, first element, number of elements) for all `count` elements. The number is
// kBits, a constant for the compiler, except for the last byte.
template <class Body>
void for_each_byte(std::size_t count, const Body& body) {
  const std::size_t whole = count / kBits;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < whole; ++i) body(i, i * kBits, kBits);
  if (count > whole * kBits) body(whole, whole * kBits, count - whole * kBits);
}

}  // namespace

// The loops below run over whole tensors, since padding consists of zeros and they stay zeros. An
// output may be an input, since each element depends only on its own position. A NaN is not
// negative, so it stays and shows in the loss. Loops read all inputs unconditionally, which a
// compiler may not decide itself: a branch per element makes a loop five times slower.

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluForward& op) {
  const std::size_t count = machine.layout.elements(op.x);
  return element_kernel_of(machine, op, [count](auto elements, const auto& operands) {
    const auto* const x = elements(operands.in.x);
    auto* const y = elements(operands.out.y);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count; ++i) {
      const float number = x[i];
      y[i] = number < 0.F ? 0.F : number;
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluBackward& op) {
  const std::size_t count = machine.layout.elements(op.x);
  const bool by_mask = op.by_mask;
  return element_kernel_of(machine, op, [count, by_mask](auto elements, const auto& operands) {
    const auto* const dy = elements(operands.in.dy);
    auto* const dx = elements(operands.out.dx);
    if (by_mask) {
      const std::uint8_t* const mask = mask_at(operands.in.y);
      for_each_byte(count, [=](std::size_t byte, std::size_t first, std::size_t lanes) {
        keep_masked(dy + first, mask[byte], dx + first, lanes);
      });
      return;
    }
    const auto* const y = elements(operands.in.y);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count; ++i) {
      const float slope = dy[i];
      dx[i] = y[i] > 0.F ? slope : 0.F;
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluForward& op) {
  const auto pd = eltwise_forward(machine.engine, function_of(op), numbers_of(machine, op));
  um::expects(scratchpad_bytes(pd) == um::Bytes{}, "element-wise kernels need no workspace");
  Call own{machine.engine,
           dnnl::eltwise_forward(pd),
           {{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_DST, pd.dst_desc()}}};
  return kernel_of(machine, op, [call = std::move(own)](const auto& operands) mutable {
    call.run({{DNNL_ARG_SRC, operands.in.x}, {DNNL_ARG_DST, operands.out.y}});
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluBackward& op) {
  const Desc x = numbers_of(machine, op);
  const auto pd = eltwise_backward(machine.engine, function_of(op), x,
                                   eltwise_forward(machine.engine, function_of(op), x));
  um::expects(scratchpad_bytes(pd) == um::Bytes{}, "element-wise kernels need no workspace");
  Call own{machine.engine,
           dnnl::eltwise_backward(pd),
           {{DNNL_ARG_SRC, pd.src_desc()},
            {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
            {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()}}};
  return kernel_of(machine, op, [call = std::move(own)](const auto& operands) mutable {
    call.run({{DNNL_ARG_SRC, operands.in.x},
              {DNNL_ARG_DIFF_DST, operands.in.dy},
              {DNNL_ARG_DIFF_SRC, operands.out.dx}});
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddForward& op) {
  const std::size_t count = machine.layout.elements(op.x);
  return element_kernel_of(machine, op, [count, op](auto elements, const auto& operands) {
    const auto* const a = elements(operands.in.a);
    const auto* const b = elements(operands.in.b);
    auto* const y = elements(operands.out.y);
    if (op.saves_mask) {
      std::uint8_t* const mask = mask_at(operands.out.mask);
      for_each_byte(count, [=](std::size_t byte, std::size_t first, std::size_t lanes) {
        mask[byte] = add_rectified(a + first, b + first, y + first, lanes);
      });
      return;
    }
    const float least = op.relu ? 0.F : -std::numeric_limits<float>::infinity();
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count; ++i) {
      const float sum = a[i] + b[i];
      y[i] = sum < least ? least : sum;
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddGradients& op) {
  const std::size_t count = machine.layout.elements(op.x);
  return element_kernel_of(machine, op, [count, op](auto elements, const auto& operands) {
    const auto* const a = elements(operands.in.a);
    const auto* const b = elements(operands.in.b);
    auto* const d = elements(operands.out.d);
    auto* const copy = op.twice ? elements(operands.out.copy) : d;
    if (op.by_mask) {
      const std::uint8_t* const mask = mask_at(operands.in.y);
      for_each_byte(count, [=](std::size_t byte, std::size_t first, std::size_t lanes) {
        add_masked(a + first, b + first, mask[byte], d + first, copy + first, lanes);
      });
    } else if (op.relu) {
      const auto* const y = elements(operands.in.y);
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count; ++i) {
        const float sum = a[i] + b[i];
        const float kept = y[i] > 0.F ? sum : 0.F;
        d[i] = kept;
        copy[i] = kept;
      }
    } else {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count; ++i) {
        const float sum = a[i] + b[i];
        d[i] = sum;
        copy[i] = sum;
      }
    }
  });
}

um::Bytes saved_bytes(const Machine& machine, const AddForward& op) {
  return um::Bytes{op.saves_mask ? (machine.layout.elements(op.x) + kBits - 1) / kBits : 0};
}

// Forward and backward are the same: x (or dy) times the mask.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutForward& op) {
  const auto apply = [layout = machine.layout, op](auto elements, const auto& operands,
                                                   const auto& arguments) {
    constexpr std::size_t kWords = DropoutMask::kGroup;
    const DropoutMask mask =
        dropout_mask(op.x.image, op.probability, op.stream, op.first_sample, *arguments.context);
    const auto* const x = elements(operands.in.x);
    auto* const y = elements(operands.out.y);
    const nets::Shape image = layout.padded(op.x.image);
    const std::size_t pixels = image.height * image.width;
    const std::size_t groups = (image.channels + kWords - 1) / kWords;
    const std::size_t stride = layout.lanes(op.x.image) == 1 ? pixels : 1;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < op.x.batch * groups * pixels; ++i) {
      const std::size_t n = i / pixels / groups;
      const std::size_t first = i / pixels % groups * kWords;  // first channel
      const std::size_t pixel = i % pixels;
      const std::size_t begin =
          n * image.elements() +
          layout.index(op.x.image, first, pixel / image.width, pixel % image.width);
      const PhiloxCounter words = mask.words(n * pixels + pixel, first / kWords);
      const std::size_t count = std::min(kWords, image.channels - first);
      for (std::size_t c = 0; c < count; ++c) {
        const std::size_t at = begin + c * stride;  // four channels are always in the same block
        y[at] = mask.apply(words[c], x[at]);
      }
    }
  };
  return element_kernel_of(machine, op, apply);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const DropoutBackward& op) {
  return make_kernel(machine, forward_of(op));
}

}  // namespace spillway::host
