#pragma once

#include <optional>
#include <string>

namespace spillway::um {

/// Why this process cannot page by UFFDIO_MOVE, as half a sentence for people; nothing when it can.
/// Tries it with a real page.
[[nodiscard]] std::optional<std::string> probe_uffd_move();

}  // namespace spillway::um
