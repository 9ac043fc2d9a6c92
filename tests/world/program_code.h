#pragma once

namespace spillway::world {

/// Whether this address is of the program itself, and not of its shared libraries.
[[nodiscard]] bool is_of_program(const void* caller);

}  // namespace spillway::world
