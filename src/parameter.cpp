#include "src/parameter.h"

namespace spillway {
namespace {

std::size_t count(const ConvolutionParameters& spec) {
  return spec.out * spec.in * spec.kernel.height * spec.kernel.width + (spec.bias ? spec.out : 0);
}
std::size_t count(const LinearParameters& spec) {
  return spec.out * spec.in.elements() + (spec.bias ? spec.out : 0);
}
std::size_t count(const BatchNormParameters& spec) { return 2 * spec.channels; }
std::size_t count(const BatchNormStatistics& spec) { return 2 * spec.channels; }

}  // namespace

std::size_t element_count(const ParameterSpec& spec) {
  return std::visit([](const auto& alternative) { return count(alternative); }, spec);
}

}  // namespace spillway
