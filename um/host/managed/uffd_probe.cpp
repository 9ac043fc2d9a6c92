#include "um/host/managed/uffd_probe.h"

#include "um/error.h"
#include "um/host/managed/uffd_move.h"

namespace spillway::um {

std::optional<std::string> probe_uffd_move() {
  try {
    const UffdMove mapper{{.page = 4_KiB, .pages = 1, .slots = 1}};
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace spillway::um
