// Compares each layer's kernels with PyTorch's results, forward and backward, on odd sizes.

#include "tests/golden/layer_golden.h"

#include <ostream>
#include <variant>

#include "tests/src/host/golden_layers.h"

namespace spillway::test {

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const LayerGolden& golden, std::ostream* out) { *out << golden.name; }

}  // namespace spillway::test

namespace spillway::host {
namespace {

using test::LayerGolden;

class GoldenLayer : public GoldenSequenceLayers {
 protected:
  using GoldenImageLayers::check;
  using GoldenSequenceLayers::check;
};

TEST_P(GoldenLayer, IsThatOfPyTorch) {
  std::visit([&](const auto& layer) { check(layer); }, g_.layer);
}

INSTANTIATE_TEST_SUITE_P(OfPyTorch, GoldenLayer, testing::ValuesIn(LayerGolden::read_all()));

}  // namespace
}  // namespace spillway::host
