#include "um/host/managed/fatal.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace spillway::um {
namespace {

iovec piece_of(std::string_view text) {
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

}  // namespace

void fatal(std::string_view sentence) noexcept {
  const std::array<iovec, 3> line{piece_of("spillway: "), piece_of(sentence), piece_of("\n")};
  [[maybe_unused]] const auto written = writev(STDERR_FILENO, line.data(), line.size());
  std::abort();
}

void fatal_fault(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& why) {
    fatal("a page fault cannot be resolved: " + std::string{why.what()} +
          "; the process ends before content is lost");
  } catch (...) {
    fatal("a page fault cannot be resolved: far memory fails");
  }
}

}  // namespace spillway::um
