#pragma once

#include <string>

#include "src/dropin/um_cuda_plugin.h"

namespace spillway::dropin {

/// Opens "host", "cuda" (the first GPU) or "cuda:N". Throws: um::Misuse when `name` is none of
/// these; um::Error when there is no such GPU.
[[nodiscard]] DropInDevice open_device(const std::string& name);

}  // namespace spillway::dropin
