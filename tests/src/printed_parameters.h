#pragma once

#include <cstddef>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <variant>

#include "src/ops/parameter.h"
#include "src/ops/tensor.h"

/// How gtest writes what tests of operations have as parameters: ctest's names are made of it.
namespace spillway {

template <class Type, class Variant>
inline constexpr bool kIsAlternativeOf = false;
template <class Type, class... Alternatives>
inline constexpr bool kIsAlternativeOf<Type, std::variant<Alternatives...>> =
    (std::is_same_v<Type, Alternatives> || ...);

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(const TensorShape& shape, std::ostream* out) {
  *out << shape.batch << " x " << to_string(shape.image);
}

// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(Precision precision, std::ostream* out) { *out << to_string(precision); }

/// "weight 20x3x3x2, bias 20": of one of the alternatives of ParameterSpec.
template <class Parameters>
requires kIsAlternativeOf<Parameters, ParameterSpec>
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Parameters& parameters, std::ostream* out) {
  std::string_view between;
  for (const ParameterArray& array : arrays_of(parameters)) {
    *out << between << array.suffix.substr(1);
    char before = ' ';
    for (const std::size_t size : array.shape) {
      *out << before << size;
      before = 'x';
    }
    between = ", ";
  }
}

}  // namespace spillway
