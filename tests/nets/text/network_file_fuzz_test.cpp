// A network file may contain anything. Each property damages a correct file in a few places. The
// result is a network that satisfies nets/network.h, or one line of refusal.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/shape_inference.h"
#include "nets/text/network_file.h"
#include "prefetch/plan.h"
#include "prefetch/verify/dataflow.h"
#include "src/plan/workload.h"
#include "src/program/machine_size_model.h"
#include "tests/nets/same_network.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

// Returns correct network files: small networks of each family.
const std::vector<std::string>& good_network_files() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> texts;
    for (const char* name : {"lenet", "vgg11", "resnet18", "resnet:1,1,1,1", "googlenet"}) {
      const nets::CatalogueEntry entry = nets::find_network(name);
      const nets::Shape image{.channels = entry.image.channels, .height = 32, .width = 32};
      texts.push_back(nets::to_text(entry, {.image = image, .classes = 10}));
    }
    return texts;
  }();
  return all;
}

// Draws an element of `all` by rapidcheck. Requires: `all` is not empty.
template <typename Container>
auto& any_of(Container& all) {
  return all[*rc::gen::inRange<std::size_t>(0, all.size())];
}

using Words = std::vector<std::string>;

std::string strange_word() {
  return *rc::gen::element<std::string>(
      "", "x", "image", "loss", "add", "concat", "relu", "flatten", "pool", "classes", "channels=4",
      "features=classes", "kernel=1x7", "kernel=0", "stride=16384", "padding=16384",
      "channels=1048576", "features=1048576", "channels=-1", "kernel=16385x1", "epsilon=1e-30",
      "probability=nan", "=", "a=", "=b", "#", "rounds-up=yes", "kind=average", "3x0x1", "1",
      "18446744073709551616", "dropout", "batch-norm", "global-average-pool", "local-response-norm",
      "\x80", std::string(300, 'y'));
}

void spoil_words(Words& words, const std::vector<Words>& lines) {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      if (!words.empty()) any_of(words) = strange_word();
      break;
    case 1:
      words.push_back(strange_word());
      break;
    case 2:
      if (!words.empty()) words.erase(words.begin() + *rc::gen::inRange<int>(0, int(words.size())));
      break;
    default: {
      const Words& other = any_of(lines);
      if (!words.empty() && !other.empty()) any_of(words) = any_of(other);
    }
  }
}

void spoil_lines(std::vector<Words>& lines) {
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      std::swap(any_of(lines), any_of(lines));
      break;
    case 1:
      any_of(lines) = Words(any_of(lines));
      break;
    case 2:
      any_of(lines).clear();
      break;
    default:
      spoil_words(any_of(lines), lines);
  }
}

// Returns a correct network file, damaged in words and lines, and sometimes in bytes.
std::string spoilt_network_file() {
  std::vector<Words> lines;
  std::istringstream good{any_of(good_network_files())};
  for (std::string line; std::getline(good, line);) {
    std::istringstream stream{line.substr(0, line.find('#'))};
    Words& words = lines.emplace_back();
    for (std::string word; stream >> word;) words.push_back(word);
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) spoil_lines(lines);
  std::string text;
  for (const Words& words : lines) {
    for (const std::string& word : words) text += word + " ";
    text += "\n";
  }
  if (*rc::gen::inRange(0, 8) == 0) text.resize(*rc::gen::inRange<std::size_t>(0, text.size()));
  for (int i = *rc::gen::element(0, 0, 0, 0, 1, 3); i > 0 && !text.empty(); --i) {
    any_of(text) = *rc::gen::arbitrary<char>();
  }
  return text;
}

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
  const std::string text = spoilt_network_file();
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
  const std::string text = spoilt_network_file();
  const auto side = *rc::gen::element<std::size_t>(1, 7, 33, 224, 16384);
  const auto classes = *rc::gen::element<std::size_t>(2, 11, 1U << 20U);
  expect_done_or_refused([&] {
    const CatalogueEntry entry = read(text);
    const Shape image{.channels = entry.image.channels, .height = side, .width = side};
    expect_promises(entry.build(image, classes), classes);
  });
}

void expect_right(const Workload& workload) {
  RC_ASSERT(workload.need().smallest <= workload.need().resident);
  for (const Step* step : {&workload.training(), &workload.evaluation()}) {
    const auto violation =
        prefetch::check_dataflow(step->graph, prefetch::runs_in_order(step->graph));
    if (violation) RC_FAIL(violation->reason);
  }
}

RC_GTEST_PROP(SpoiltNetworkFile, BecomesStepsThatAreRightOrIsRefusedInOneLine, ()) {
  std::istringstream text{spoilt_network_file()};
  try {
    const nets::CatalogueEntry entry = nets::read_network(text, "spoilt.net");
    const nets::Network network = entry.build(entry.image, entry.classes);
    expect_right(Workload{network, MachineSizeModel{}, {.batch = 3}});
    RC_TAG("right");
  } catch (const um::Error& error) {
    RC_TAG("refused");
    const std::string sentence = error.what();
    RC_ASSERT(std::ranges::none_of(sentence, [](char c) { return c < ' ' || c == '\x7f'; }));
  }
}

}  // namespace
}  // namespace spillway::nets
