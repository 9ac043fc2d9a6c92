#pragma once

#include <cstddef>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/sample/token_sampler.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// What `spillway sample` is asked for.
struct SampleFlags {
  std::string checkpoint;
  std::string tokenizer;      ///< empty: bytes are tokens
  bool uses_weights = false;  ///< of a checkpoint with averages, too
  std::string prompt;
  std::size_t tokens = 200;
  SamplingOptions sampling;
  DeviceFlags device;
  std::string json;

  void add_to(CLI::App& command);

 private:
  void add_text_to(CLI::App& command);
  void add_sampling_to(CLI::App& command);
};

}  // namespace spillway::cli
