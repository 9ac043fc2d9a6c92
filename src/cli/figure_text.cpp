#include "src/cli/figure_text.h"

#include <chrono>

#include "src/cli/duration.h"

namespace spillway::cli {

std::string time_text(const Figure& figure) {
  const auto median = std::chrono::round<um::Nanoseconds>(figure.median);
  return duration_text(median) + (figure.settled ? ' ' : '~');
}

}  // namespace spillway::cli
