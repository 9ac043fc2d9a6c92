#include "src/parameter.h"

namespace spillway {
namespace {

struct Count {
  std::size_t operator()(const ConvolutionParameters& p) const {
    return p.out * p.in * p.kernel.height * p.kernel.width + (p.bias ? p.out : 0);
  }
  std::size_t operator()(const LinearParameters& p) const {
    return p.out * p.in.elements() + (p.bias ? p.out : 0);
  }
  std::size_t operator()(const BatchNormParameters& p) const { return 2 * p.channels; }
  std::size_t operator()(const BatchNormStatistics& p) const { return 2 * p.channels; }
};

}  // namespace

std::size_t element_count(const ParameterSpec& spec) { return std::visit(Count{}, spec); }

}  // namespace spillway
