// Prints the stack of a process that aborts: the C++ library prints only the reason.

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {

using Frames = std::array<void*, 64>;

// Prints one line per frame, innermost first: "world: at /usr/lib/libc.so.6 0x3bf4e".
void tell_frames(int number) {
  std::signal(number, SIG_DFL);
  Frames frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    Dl_info object{};
    if (dladdr(frames.at(i), &object) == 0) continue;
    const auto offset = reinterpret_cast<std::uintptr_t>(frames.at(i)) -
                        reinterpret_cast<std::uintptr_t>(object.dli_fbase);
    std::fprintf(stderr, "world: at %s 0x%zx\n", object.dli_fname,
                 static_cast<std::size_t>(offset));
  }
  std::raise(number);
}

[[gnu::constructor]] void watch_aborts() {
  Frames frames{};
  backtrace(frames.data(), static_cast<int>(frames.size()));  // loads the libraries that it needs
  std::signal(SIGABRT, tell_frames);
}

}  // namespace
