#include "src/cli/train/initial_flags.h"

#include <CLI/CLI.hpp>

#include "nets/text/network_file.h"
#include "um/error.h"

namespace spillway::cli {

void InitialFlags::add_to(CLI::App& command, const char* group) {
  command
      .add_option("--weights", weights,
                  "Start from the parameters of this safetensors file, or folder of them, named as "
                  "by Hugging Face (GPT-2, Llama, BERT, ViT) or torchvision (ResNet, VGG, "
                  "DenseNet, GoogLeNet, Inception-v3, SqueezeNet, ViT)")
      ->type_name("FILE")
      ->group(group);
  command
      .add_flag("--new-head", has_new_head,
                "Draw the last layer anew where --weights, or the ONNX file of --net, has it for "
                "another number of classes")
      ->group(group);
  add_drawing_to(command, group);
}

void InitialFlags::add_drawing_to(CLI::App& command, const char* group) {
  command
      .add_option_function<std::string>(
          "--init", [this](const std::string& name) { rule = find_initialisation(name).value(); },
          "Rule that weights are drawn by: torchvision (convolutions He by fan-out, linear layers "
          "with deviation 0.01, as its VGG), torchvision-resnet (linear layers uniform), "
          "torchvision-densenet (convolutions He by fan-in, linear layers uniform), pytorch "
          "(uniform, the defaults of its layers) or xavier "
          "(convolutions He by fan-in, linear layers Xavier) (default: torchvision for built-in "
          "networks of photos, xavier for lenet, transformers and network files)")
      ->check(CLI::IsMember(
          {"torchvision", "torchvision-resnet", "torchvision-densenet", "pytorch", "xavier"}))
      ->group(group);
  command
      .add_flag("--zero-gamma", has_zero_gamma,
                "Begin with gamma 0 in the last batch norm of each residual block, so that each "
                "block begins as its shortcut (Goyal et al., 2017)")
      ->excludes("--weights")
      ->group(group);
}

void InitialFlags::expect_fitting(bool goes_on) const {
  if (!weights.empty() && !has_new_head && rule) {
    throw CLI::ValidationError{"--init",
                               "is of weights that are drawn, and --weights has them all"};
  }
  if (!has_new_head || goes_on || !weights.empty()) return;
  throw CLI::ValidationError{"--new-head", "needs --weights FILE, whose last layer it replaces"};
}

Initialisation InitialFlags::rule_for(const std::string& network) const {
  if (rule) return *rule;
  return nets::is_network_file(network) ? Initialisation::kXavier : usual_initialisation(network);
}

TensorSource InitialFlags::values_of(const OpenedNetwork& network, bool goes_on) const {
  if (network.imported == nullptr || !weights.empty() || rule || goes_on) return {};
  if (has_zero_gamma) {
    throw um::Error{"--zero-gamma is for weights that are drawn, but those of " +
                    network.imported->file + " are not; leave it out, or give --init"};
  }
  return onnx_weights(network, has_new_head);
}

}  // namespace spillway::cli
