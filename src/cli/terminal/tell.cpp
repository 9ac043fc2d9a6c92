#include "src/cli/terminal/tell.h"

#include <cstdio>

namespace spillway::cli {

void tell(std::string_view text) noexcept {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace spillway::cli
