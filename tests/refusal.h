#pragma once

#include <string>

#include "um/error.h"

namespace spillway::test {

/// The sentence with which `action` is refused; "accepted" when it is not. What the action returns
/// is dropped.
template <typename Action>
[[nodiscard]] std::string refusal(Action action) {
  try {
    static_cast<void>(action());
  } catch (const um::Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace spillway::test
