#include "src/cli/sweep_progress.h"

#include <fmt/core.h>

namespace spillway::cli {

void SweepProgressLine::show(const SweepProgress& progress) {
  const double passed = std::chrono::duration<double>{Clock::now() - begin_}.count();
  const double left = progress.done > 0 ? passed * (1 - progress.done) / progress.done : 0;
  line_.show(fmt::format("{} {:.0f} %, {:.0f} s left; {}", what_, 100 * progress.done, left,
                         progress.latest));
}

}  // namespace spillway::cli
