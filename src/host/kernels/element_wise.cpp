#include <cmath>
#include <cstdint>
#include <numbers>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/masked_floats.h"

namespace spillway::host {
namespace {

// P(X <= x) of a standard normal X. The complement of the error function keeps small ones exact.
float normal_below(float x) { return 0.5F * std::erfc(-x * std::numbers::sqrt2_v<float> / 2); }

std::uint8_t* mask_at(std::byte* operand) { return reinterpret_cast<std::uint8_t*>(operand); }

// Calls body(byte of the mask, its first float, how many it has) for all of `count` floats: always
// with kBits, known to the compiler, but for the last.
template <class Body>
void for_each_byte(std::size_t count, const Body& body) {
  const std::size_t whole = count / kBits;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < whole; ++i) body(i, i * kBits, kBits);
  if (count > whole * kBits) body(whole, whole * kBits, count - whole * kBits);
}

}  // namespace

// The loops below run over whole tensors: zeros, of which padding consists, stay zeros. An output
// may be one of the inputs, since each element depends on its own place only. A NaN is no negative
// number, so it stays and shows in the loss. What is read is read whatever the condition, which a
// compiler may not decide by itself: a branch for each number makes a loop take five times as long.

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluForward& op) {
  return kernel_of(machine, op, [count = machine.layout.floats(op.x)](const auto& operands) {
    const float* const x = floats(operands.in.x);
    float* const y = floats(operands.out.y);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count; ++i) y[i] = x[i] < 0.F ? 0.F : x[i];
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluBackward& op) {
  const std::size_t count = machine.layout.floats(op.x);
  return kernel_of(machine, op, [count, by_mask = op.by_mask](const auto& operands) {
    const float* const dy = floats(operands.in.dy);
    float* const dx = floats(operands.out.dx);
    if (by_mask) {
      const std::uint8_t* const mask = mask_at(operands.in.y);
      for_each_byte(count, [=](std::size_t byte, std::size_t first, std::size_t lanes) {
        keep_masked(dy + first, mask[byte], dx + first, lanes);
      });
      return;
    }
    const float* const y = floats(operands.in.y);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count; ++i) {
      const float slope = dy[i];
      dx[i] = y[i] > 0.F ? slope : 0.F;
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluForward& op) {
  return kernel_of(machine, op, [count = machine.layout.floats(op.x)](const auto& operands) {
    const float* const x = floats(operands.in.x);
    float* const y = floats(operands.out.y);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < count; ++i) y[i] = x[i] * normal_below(x[i]);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluBackward& op) {
  return kernel_of(machine, op, [count = machine.layout.floats(op.x)](const auto& operands) {
    const float* const x = floats(operands.in.x);
    const float* const dy = floats(operands.in.dy);
    float* const dx = floats(operands.out.dx);
    constexpr float kDensityAtZero =
        std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < count; ++i) {
      const float density = kDensityAtZero * std::exp(-x[i] * x[i] / 2);
      dx[i] = dy[i] * (normal_below(x[i]) + x[i] * density);
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddForward& op) {
  const std::size_t count = machine.layout.floats(op.x);
  return kernel_of(machine, op, [count, op](const Operands<AddForward>& operands) {
    const float* const a = floats(operands.in.a);
    const float* const b = floats(operands.in.b);
    float* const y = floats(operands.out.y);
    if (op.saves_mask) {
      std::uint8_t* const mask = mask_at(operands.out.mask);
      for_each_byte(count, [=](std::size_t byte, std::size_t first, std::size_t lanes) {
        mask[byte] = add_rectified(a + first, b + first, y + first, lanes);
      });
    } else if (op.relu) {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count; ++i) {
        const float sum = a[i] + b[i];
        y[i] = sum < 0.F ? 0.F : sum;
      }
    } else {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddGradients& op) {
  const std::size_t count = machine.layout.floats(op.x);
  return kernel_of(machine, op, [count, op](const Operands<AddGradients>& operands) {
    const float* const a = floats(operands.in.a);
    const float* const b = floats(operands.in.b);
    float* const d = floats(operands.out.d);
    float* const copy = op.twice ? floats(operands.out.copy) : d;
    if (op.by_mask) {
      const std::uint8_t* const mask = mask_at(operands.in.y);
      for_each_byte(count, [=](std::size_t byte, std::size_t first, std::size_t lanes) {
        add_masked(a + first, b + first, mask[byte], d + first, copy + first, lanes);
      });
    } else if (op.relu) {
      const float* const y = floats(operands.in.y);
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count; ++i) {
        const float sum = a[i] + b[i];
        d[i] = y[i] > 0.F ? sum : 0.F;
        copy[i] = d[i];
      }
    } else {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count; ++i) {
        d[i] = a[i] + b[i];
        copy[i] = d[i];
      }
    }
  });
}

um::Bytes saved_bytes(const Machine& machine, const AddForward& op) {
  return um::Bytes{op.saves_mask ? (machine.layout.floats(op.x) + kBits - 1) / kBits : 0};
}

}  // namespace spillway::host
