#include <cstdint>
#include <limits>
#include <utility>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/masked_numbers.h"

namespace spillway::host {
namespace {

template <class Gelu>
dnnl::algorithm function_of(const Gelu& op) {
  return op.tanh ? dnnl::algorithm::eltwise_gelu_tanh : dnnl::algorithm::eltwise_gelu_erf;
}

// All numbers of a tensor, padding included.
template <class Op>
Desc numbers_of(const Machine& machine, const Op& op) {
  return machine.layout.dense_desc({machine.layout.elements(op.x)});
}

std::uint8_t* mask_at(std::byte* operand) { return reinterpret_cast<std::uint8_t*>(operand); }

// Calls body(byte of the mask, its first number, how many it has) for all `count` numbers: always
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

}  // namespace spillway::host
