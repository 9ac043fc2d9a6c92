// What the preloaded library says when a process starts and ends.
#include <atomic>
#include <new>

#include "src/dropin/preload/bypass.h"
#include "src/dropin/preload/line.h"
#include "src/dropin/preload/served_memory.h"

namespace spillway::dropin {
namespace {

constinit std::atomic<bool> has_warned{false};

void warn_of_bypass() noexcept {
  if (has_warned || served_memory().options().is_quiet || !is_bypassed()) return;
  has_warned = true;
  write_line(
      "its CUDA runtime is linked into it, so its allocations are not seen here; link it with "
      "nvcc -cudart shared");
}

[[gnu::constructor]] void start() { warn_of_bypass(); }

/// Also for who opened the driver in the meantime.
[[gnu::destructor]] void end() {
  warn_of_bypass();
  if (!served_memory().options().has_report) return;
  try {
    write_line(served_memory().report());
  } catch (const std::bad_alloc&) {
    write_line("no memory for a report");
  }
}

}  // namespace
}  // namespace spillway::dropin
