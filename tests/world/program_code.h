#pragma once

namespace spillway::world {

/// Returns whether an address belongs to the program itself, not to its shared libraries.
[[nodiscard]] bool is_of_program(const void* caller);

}  // namespace spillway::world
