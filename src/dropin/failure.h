#pragma once

#include "um/dropin/spillway_um.h"

namespace spillway::dropin {

/// Keeps the sentence of the exception that is being handled as this thread's last failure, and
/// says which status it is. Requires: called in a handler.
[[nodiscard]] spillway_um_status note_failure() noexcept;

/// The calling thread's.
[[nodiscard]] const char* last_failure() noexcept;

/// Does what a C function does; nothing is thrown out of it.
template <class Action>
[[nodiscard]] spillway_um_status guarded(const Action& action) noexcept {
  try {
    action();
    return SPILLWAY_UM_OK;
  } catch (...) {
    return note_failure();
  }
}

}  // namespace spillway::dropin
