#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nets/shape.h"
#include "src/ops/narrow_floats.h"  // Bfloat16, the elements of tensors with kBf16
#include "um/bytes.h"

namespace spillway {

/// The logical shape of a batch: (N, C, H, W) of 32-bit floats. Each backend chooses layout and
/// padding.
struct TensorShape {
  std::size_t batch = 0;
  nets::Shape image;

  [[nodiscard]] constexpr std::size_t elements() const { return batch * image.elements(); }
  friend constexpr bool operator==(const TensorShape&, const TensorShape&) = default;
};

/// Bytes of `count` 32-bit floats.
[[nodiscard]] constexpr um::Bytes float_bytes(std::size_t count) {
  return um::Bytes{count * sizeof(float)};
}

/// How activations and gradients are stored and multiplied. Parameters, their gradients, statistics
/// and sums are always float.
enum class Precision {
  kFp32,  ///< float, multiplied as float
  kTf32,  ///< float, multiplied as TF32
  kBf16   ///< bfloat16 activations and gradients; kernels read the weights as bfloat16
};

/// Returns "fp32", "tf32" or "bf16".
[[nodiscard]] constexpr std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      break;
  }
  return "bf16";
}

/// Returns nullopt if no precision has this name.
[[nodiscard]] constexpr std::optional<Precision> find_precision(std::string_view name) {
  for (const Precision each : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if (to_string(each) == name) return each;
  }
  return std::nullopt;
}

/// Operands by name: `Reads<T>` and `Writes<T>` of an operation's struct. `T` is a block's number
/// in a step and an address in a kernel. A list of operands has the reads in their order, then the
/// writes. Optional operands come last in each; read_count() and write_count() of the operation say
/// how many there are.
template <class Op>
using Reads = typename Op::template Reads<std::byte*>;
template <class Op>
using Writes = typename Op::template Writes<std::byte*>;

/// Number of names in a struct of operands.
template <template <class> class Names>
inline constexpr std::size_t kNameCount = std::is_empty_v<Names<std::byte*>>
                                              ? 0
                                              : sizeof(Names<std::byte*>) / sizeof(std::byte*);

template <class Op>
[[nodiscard]] std::size_t read_count(const Op& op) {
  if constexpr (requires { op.read_count(); }) {
    return op.read_count();
  } else {
    return kNameCount<Op::template Reads>;
  }
}
template <class Op>
[[nodiscard]] std::size_t write_count(const Op& op) {
  if constexpr (requires { op.write_count(); }) {
    return op.write_count();
  } else {
    return kNameCount<Op::template Writes>;
  }
}
template <class Op>
[[nodiscard]] std::size_t operand_count(const Op& op) {
  return read_count(op) + write_count(op);
}

/// Returns the first `count` operands of a struct, in order.
template <class T, class Names>
[[nodiscard]] std::vector<T> listed(const Names& names, std::size_t count) {
  if constexpr (std::is_empty_v<Names>) {
    return {};
  } else if constexpr (requires { names.listed(); }) {
    return names.listed();
  } else {
    const auto all = std::bit_cast<std::array<T, sizeof(Names) / sizeof(T)>>(names);
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
  }
}

/// Returns the operands of a list by name; absent ones are null.
template <class Names, class T>
[[nodiscard]] Names named(std::span<const T> list) {
  if constexpr (std::is_empty_v<Names>) {
    return {};
  } else if constexpr (requires { Names::of(list); }) {
    return Names::of(list);
  } else {
    std::array<T, sizeof(Names) / sizeof(T)> all{};
    for (std::size_t i = 0; i < list.size(); ++i) all[i] = list[i];
    return std::bit_cast<Names>(all);
  }
}

/// Reads and Writes that several operations share, named after their members.
template <class T>
struct OnlyX {
  T x;
};
template <class T>
struct OnlyY {
  T y;
};
template <class T>
struct OnlyDx {
  T dx;
};
template <class T>
struct OnlyDy {
  T dy;
};
template <class T>
struct XAndDy {
  T x, dy;
};
template <class T>
struct XAndParameters {
  T x, parameters;
};

/// The operands of a kernel of `Op`.
template <class Op>
struct Operands {
  Reads<Op> in;
  Writes<Op> out;
};

/// Requires: `list` has operand_count(op) addresses.
template <class Op>
[[nodiscard]] Operands<Op> operands_of(const Op& op, std::span<std::byte* const> list) {
  const std::size_t reads = read_count(op);
  return {.in = named<Reads<Op>, std::byte*>(list.first(reads)),
          .out = named<Writes<Op>, std::byte*>(list.subspan(reads))};
}
/// Overload for operations with a fixed number of operands.
template <class Op>
requires(
    !requires(Op op) { op.read_count(); } && !requires(Op op) { op.write_count(); })
    [[nodiscard]] Operands<Op> operands_of(std::span<std::byte* const> list) {
  constexpr std::size_t kReads = kNameCount<Op::template Reads>;
  return {.in = named<Reads<Op>, std::byte*>(list.first(kReads)),
          .out = named<Writes<Op>, std::byte*>(list.subspan(kReads))};
}

}  // namespace spillway
