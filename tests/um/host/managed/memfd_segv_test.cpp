#include "um/host/managed/memfd_segv.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace spillway::um {
namespace {

std::size_t mappings_of_this_process() {
  std::ifstream file{"/proc/self/maps"};
  std::string line;
  std::size_t lines = 0;
  while (std::getline(file, line)) ++lines;
  return lines;
}

// Every other one of 2000 pages is near for a while, 100 at a time: each of these is a mapping, and
// so is the gap after it. The 900 that are gone are joined with their neighbours.
TEST(MemfdSegv, NeedsTwoMappingsForEachNearPage) {
  constexpr PageIndex kNear = 100;
  MemfdSegv mapper{{.page = 4_KiB, .pages = 2000, .slots = kNear}};
  const std::size_t before = mappings_of_this_process();
  for (PageIndex i = 0; i < 1000; ++i) {
    if (i >= kNear) mapper.unmap(2 * (i - kNear), i % kNear);
    mapper.map(2 * i, i % kNear);
  }
  const std::size_t others = 10;  // what the test itself may have been given meanwhile
  EXPECT_LE(mappings_of_this_process(), before + std::size_t{2} * kNear + others);
}

}  // namespace
}  // namespace spillway::um
