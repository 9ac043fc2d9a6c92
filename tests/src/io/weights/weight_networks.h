#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nets/families/published_networks.h"
#include "nets/network.h"
#include "nets/text/network_file.h"
#include "src/io/weights/weight_file.h"
#include "src/program/machine_size_model.h"
#include "src/program/step.h"
#include "src/train/checkpoint/state.h"

namespace spillway::test {

/// Returns a file in golden/weights, written by tools/golden/make_weight_golden.
[[nodiscard]] inline std::string weight_golden(const std::string& name) {
  return std::string{SPILLWAY_GOLDEN_FILES} + "/weights/" + name;
}

/// Returns the network of a golden file by name: "gpt", "llama-tied".
[[nodiscard]] inline nets::Network weight_network(const std::string& name) {
  constexpr std::size_t kTokens = 10;
  constexpr std::size_t kWords = 23;
  if (name == "gpt") {
    return nets::gpt(name, {.layers = 2, .heads = 2, .width = 16, .context = 12},
                     nets::tokens(kTokens), kWords);
  }
  if (name.starts_with("llama")) {
    return nets::llama(
        name, {.layers = 2, .heads = 4, .kv_heads = 2, .width = 16, .hidden = 24, .context = 12},
        nets::tokens(kTokens), kWords);
  }
  if (name == "bert") {
    return nets::bert(name, {.layers = 2, .heads = 2, .width = 16, .context = 12},
                      nets::tokens(kTokens), kWords);
  }
  if (name.starts_with("vit")) {
    return nets::vit(name, {.layers = 2, .heads = 2, .width = 16, .patch = 4}, {3, 12, 12}, 5);
  }
  return nets::build_network(nets::read_network_file(weight_golden(name + ".net")));
}

/// Returns the network as files of weights name it.
[[nodiscard]] inline NamedNetwork named(const nets::Network& network) {
  return {.name = network.name,
          .arrays = weight_tensors(make_training_step(network, MachineSizeModel{}, {.batch = 2}))};
}

}  // namespace spillway::test
