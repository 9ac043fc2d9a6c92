#include "um/host/managed/fatal.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace spillway::um {
namespace {

iovec piece_of(std::string_view text) {
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

template <std::size_t count>
[[noreturn]] void end_with(const std::array<iovec, count>& line) noexcept {
  [[maybe_unused]] const auto written = writev(STDERR_FILENO, line.data(), count);
  std::abort();
}

std::string_view known(const char* text) { return text != nullptr ? text : "an unknown error"; }

}  // namespace

void fatal(std::string_view sentence) noexcept {
  end_with(std::array{piece_of("spillway: "), piece_of(sentence), piece_of("\n")});
}

// Uses two GNU functions that return constants, since strerror() may allocate.
void fatal_refusal(std::string_view what, int errno_value, std::string_view advice) noexcept {
  end_with(std::array{piece_of("spillway: "), piece_of(what), piece_of(": "),
                      piece_of(known(strerrorname_np(errno_value))), piece_of(", "),
                      piece_of(known(strerrordesc_np(errno_value))), piece_of("; "),
                      piece_of(advice), piece_of("\n")});
}

void fatal_fault(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& why) {
    end_with(std::array{piece_of("spillway: a page fault cannot be resolved: "),
                        piece_of(why.what()),
                        piece_of("; the process ends before content is lost\n")});
  } catch (...) {
    fatal("a page fault cannot be resolved: far memory fails");
  }
}

}  // namespace spillway::um
