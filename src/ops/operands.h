#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace spillway {

/// What an operation reads and writes, by name: `Reads<T>` and `Writes<T>` of its struct, where `T`
/// is a block's number in a step and an address in a kernel. A list of operands is the reads in
/// their order, then the writes. Operands that are only there under a condition come last in
/// either, and the operation counts: read_count(), write_count().
template <class Op>
using Reads = typename Op::template Reads<std::byte*>;
template <class Op>
using Writes = typename Op::template Writes<std::byte*>;

/// How many names a struct of operands has.
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

/// The first `count` operands of a struct, in their order.
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

/// The operands of a list by their names; those that are not there are null.
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

/// What several operations read or write: their Reads or their Writes, named after their members.
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

/// What a kernel of `Op` works on.
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
/// Likewise, of an operation that always has the same.
template <class Op>
requires(
    !requires(Op op) { op.read_count(); } && !requires(Op op) { op.write_count(); })
    [[nodiscard]] Operands<Op> operands_of(std::span<std::byte* const> list) {
  constexpr std::size_t kReads = kNameCount<Op::template Reads>;
  return {.in = named<Reads<Op>, std::byte*>(list.first(kReads)),
          .out = named<Writes<Op>, std::byte*>(list.subspan(kReads))};
}

}  // namespace spillway
