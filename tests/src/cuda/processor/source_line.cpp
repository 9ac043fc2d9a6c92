#include "tests/src/cuda/processor/source_line.h"

#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <vector>

namespace spillway::processor {
namespace {

// Returns the program's address in memory; the program is the first object in the list.
std::uintptr_t program_base() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* result) {
        *static_cast<std::uintptr_t*>(result) = info->dlpi_addr;
        return 1;
      },
      &base);
  return base;
}

// Returns a function, then a file and line.
std::vector<std::string> ask(const void* code) {
  std::ostringstream command;
  command << "addr2line -f -C -s -e /proc/" << getpid() << "/exe 0x" << std::hex
          << reinterpret_cast<std::uintptr_t>(code) - program_base() << " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> answer{popen(command.str().c_str(), "r"), &pclose};
  std::vector<std::string> lines;
  std::array<char, 1000> line{};
  while (answer != nullptr && fgets(line.data(), line.size(), answer.get()) != nullptr) {
    lines.emplace_back(line.data());
    if (lines.back().ends_with('\n')) lines.back().pop_back();
  }
  if (lines.size() >= 2) return lines;
  std::ostringstream address;
  address << code;
  return {address.str(), address.str()};
}

}  // namespace

std::string function_name(const void* code) { return ask(code)[0]; }
std::string source_line(const void* code) { return ask(code)[1]; }

}  // namespace spillway::processor
