#include "src/dropin/preload/line.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace spillway::dropin {

void write_line(std::string_view text) noexcept {
  dprintf(STDERR_FILENO, "spillway_um_preload: %s: %.*s\n", program_invocation_short_name,
          static_cast<int>(text.size()), text.data());
}

}  // namespace spillway::dropin
