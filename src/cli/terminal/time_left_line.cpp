#include "src/cli/terminal/time_left_line.h"

#include <fmt/core.h>

namespace spillway::cli {

void TimeLeftLine::show(double done, const std::string& latest) {
  const double passed = std::chrono::duration<double>{Clock::now() - begin_}.count();
  const std::string left =
      done > 0 ? fmt::format(", {:.0f} s left", passed * (1 - done) / done) : "";
  line_.show(fmt::format("{} {:.0f} %{}; {}", what_, 100 * done, left, latest));
}

}  // namespace spillway::cli
