#include "src/cli/terminal/tell.h"

#include <atomic>
#include <cstdio>

namespace spillway::cli {
namespace {

std::atomic<bool> is_silent = false;

}  // namespace

void be_silent() noexcept { is_silent = true; }

void tell(std::string_view text) noexcept {
  if (is_silent) return;
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace spillway::cli
