#include "src/onnx/layer_names.h"

#include <algorithm>
#include <string_view>

namespace spillway {
namespace {

constexpr std::size_t kLongestOnnxName = 180;  // names of layers have 200, and some get a number

bool is_of_names(char c) {
  constexpr std::string_view kOthers = "_-.:,/+";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

std::string without_suffix(std::string name, const std::string& suffix) {
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
  return name;
}

}  // namespace

std::string as_layer_name(const std::string& name) {
  std::string text = name.substr(0, kLongestOnnxName);
  std::ranges::replace_if(
      text, [](char c) { return !is_of_names(c); }, '_');
  text.erase(0, text.find_first_not_of('/'));
  return text.empty() ? "layer" : text;
}

std::string LayerNames::name_for(const OnnxNode& node, const std::string& weights) {
  std::string name = without_suffix(weights, ".weight");
  if (name == weights) {  // it is no layer's name
    name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
    name = without_suffix(name, "/" + node.type);
  }
  return unique(name);
}

std::string LayerNames::unique(const std::string& name) { return names_.take(as_layer_name(name)); }

}  // namespace spillway
