#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/plan/memory_choice.h"
#include "um/device.h"
#include "um/error.h"

namespace spillway::cli {

/// One device as `spillway devices` lists it, or why it cannot be used.
struct ListedDevice {
  std::string name;     ///< as --device takes it
  std::string trouble;  ///< empty when it can be used
  std::string description;
  std::string kernels;
  um::Bytes available;
  um::Bytes total;
  MemoryChoice memory;  ///< what train does without --memory and --far
  std::vector<um::Capability> capabilities;
};

[[nodiscard]] ListedDevice unusable(std::string name, const um::Error& error);

/// Returns what the device says of itself; its kernels are missing.
[[nodiscard]] ListedDevice describe_device(std::string name, const um::Device& device);

[[nodiscard]] nlohmann::json to_json(const ListedDevice& listed);

/// Returns lines for people.
[[nodiscard]] std::string to_text(const ListedDevice& listed);

}  // namespace spillway::cli
