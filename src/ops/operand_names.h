#pragma once

namespace spillway {

/// What several operations read or write: their Reads or their Writes (operands.h). All structs of
/// this file are such, and are named after their members.
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

}  // namespace spillway
