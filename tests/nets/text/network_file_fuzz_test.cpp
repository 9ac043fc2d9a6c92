// A network file may contain anything. Each property damages a correct file in a few places. The
// result is a network that satisfies nets/network.h, or one line of refusal.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

#include "nets/shape_inference.h"
#include "nets/text/network_file.h"
#include "tests/nets/same_network.h"
#include "tests/nets/spoilt_network.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

CatalogueEntry read(const std::string& text) {
  std::istringstream stream{text};
  return read_network(stream, "spoilt.net");
}

void expect_one_line(const std::string& sentence) {
  RC_ASSERT(sentence.starts_with("spoilt.net"));
  RC_ASSERT(sentence.size() < 1000U);
  RC_ASSERT(std::ranges::none_of(sentence, [](char c) { return c < ' ' || c == '\x7f'; }));
}

// Requires success or a refusal in one line.
void expect_done_or_refused(const std::function<void()>& action) {
  try {
    action();
    RC_TAG("done");
  } catch (const um::Error& error) {
    RC_TAG("refused");
    expect_one_line(error.what());
  }
}

void expect_promises(const Network& network, std::size_t classes) {
  RC_ASSERT(network.nodes.size() > 1U);
  RC_ASSERT(network.classes() == classes);
  RC_ASSERT(std::holds_alternative<SoftmaxCrossEntropy>(network.nodes.back().layer));
  std::set<std::string> names{network.nodes[0].name};
  for (std::size_t i = 1; i < network.nodes.size(); ++i) {
    const Node& node = network.nodes[i];
    RC_ASSERT(names.insert(node.name).second);
    RC_ASSERT(!node.inputs.empty());
    std::vector<Shape> inputs;
    for (const NodeId input : node.inputs) {
      RC_ASSERT(static_cast<std::size_t>(input) < i);
      inputs.push_back(network[input].output);
    }
    RC_ASSERT(infer_shape(node.name, node.layer, inputs) == node.output);
  }
}

RC_GTEST_PROP(SpoiltNetworkFile, IsANetworkOrRefusedInOneLine, ()) {
  const std::string text = test::spoilt_network_file();
  expect_done_or_refused([&] {
    const CatalogueEntry entry = read(text);
    const Network network = entry.build(entry.image, entry.classes);
    expect_promises(network, entry.classes);
    const CatalogueEntry again = read(to_text(entry));
    const std::string different =
        test::difference(again.build(again.image, again.classes), network);
    if (!different.empty()) RC_FAIL(different);
  });
}

RC_GTEST_PROP(SpoiltNetworkFile, TakesOtherImagesAndClassesOrRefusesThemInOneLine, ()) {
  const std::string text = test::spoilt_network_file();
  const auto side = *rc::gen::element<std::size_t>(1, 7, 33, 224, 16384);
  const auto classes = *rc::gen::element<std::size_t>(2, 11, 1U << 20U);
  expect_done_or_refused([&] {
    const CatalogueEntry entry = read(text);
    const Shape image{.channels = entry.image.channels, .height = side, .width = side};
    expect_promises(entry.build(image, classes), classes);
  });
}

}  // namespace
}  // namespace spillway::nets
