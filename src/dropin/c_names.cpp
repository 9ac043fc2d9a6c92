#include "src/dropin/c_names.h"

#include <array>
#include <string_view>

namespace spillway::dropin {
namespace {

struct Name {
  std::string_view of_program;
  std::string_view of_c;
};

// A longer name stands before one that it begins with.
constexpr std::array kNames{
    Name{.of_program = "--device host", .of_c = "the device \"host\""},
    Name{.of_program = "--memory copy, a smaller batch,", .of_c = "less capacity,"},
    Name{.of_program = "--memory copy", .of_c = "the device \"host\""},
    Name{.of_program = "--far file:PATH", .of_c = "far_path"},
    Name{.of_program = "--far file", .of_c = "far_path"},
    Name{.of_program = "--link-bandwidth", .of_c = "link_bytes_per_second"},
    Name{.of_program = "--paging memfd", .of_c = "SPILLWAY_UM_PAGING_MEMFD"},
    Name{.of_program = "--paging", .of_c = "paging"},
    Name{.of_program = "--oversubscribe", .of_c = "oversubscribe"}};

}  // namespace

std::string in_c_names(std::string sentence) {
  for (const Name& name : kNames) {
    for (auto at = sentence.find(name.of_program); at != std::string::npos;
         at = sentence.find(name.of_program, at + name.of_c.size())) {
      sentence.replace(at, name.of_program.size(), name.of_c);
    }
  }
  return sentence;
}

}  // namespace spillway::dropin
