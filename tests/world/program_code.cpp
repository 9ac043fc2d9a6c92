#include "tests/world/program_code.h"

#include <link.h>

#include <cstdint>

namespace spillway::world {
namespace {

struct Code {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

Code find_code() {
  Code code;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        auto& range = *static_cast<Code*>(found);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          range.begin = object->dlpi_addr + part.p_vaddr;
          range.end = range.begin + part.p_memsz;
        }
        return 1;  // the first object is the program
      },
      &code);
  return code;
}

}  // namespace

bool is_of_program(const void* caller) {
  static const Code code = find_code();
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return code.begin <= address && address < code.end;
}

}  // namespace spillway::world
