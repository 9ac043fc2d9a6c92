#include "src/weights/kept_arrays.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace spillway {
namespace {

constexpr std::string_view kAverage = ".average";

// What the name of a block that is kept beside parameters adds to theirs (Step's StateBlock).
constexpr std::array<std::string_view, 6> kKept{".momentum",   ".exp_avg",         ".exp_avg_sq",
                                                ".square_avg", ".momentum_buffer", kAverage};

// "conv1" and ".weight" of "conv1.weight".
struct ArrayName {
  explicit ArrayName(const std::string& name)
      : block{name.substr(0, name.rfind('.'))}, suffix{name.substr(block.size())} {}
  std::string block;
  std::string suffix;
};

}  // namespace

std::string average_of(const std::string& array) {
  const ArrayName name{array};
  return name.block + std::string{kAverage} + name.suffix;
}

bool is_kept_beside(const std::string& name, const SafetensorsReader& checkpoint) {
  const ArrayName parts{name};
  return std::ranges::any_of(kKept, [&](std::string_view kept) {
    return parts.block.ends_with(kept) &&
           checkpoint.find(parts.block.substr(0, parts.block.size() - kept.size()) + parts.suffix)
               .has_value();
  });
}

bool has_averages(const SafetensorsReader& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors(), [&](const StoredTensor& tensor) {
    return checkpoint.find(average_of(tensor.name)).has_value();
  });
}

}  // namespace spillway
