#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spillway::test {

/// Returns tests/golden/images, or a file in it.
[[nodiscard]] inline std::filesystem::path image_golden(const std::string& name = {}) {
  return std::filesystem::path{SPILLWAY_GOLDEN_FILES} / "images" / name;
}

using FileContent = std::vector<std::uint8_t>;

[[nodiscard]] inline FileContent golden_image(const std::string& name) {
  std::ifstream file{image_golden(name), std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Returns the results of Pillow and torchvision for these images (tools/golden/make_image_golden).
[[nodiscard]] inline nlohmann::json golden_numbers() {
  return nlohmann::json::parse(std::ifstream{image_golden("images.json")});
}

/// Converts hexadecimal digits to bytes.
[[nodiscard]] inline FileContent bytes_of(const std::string& digits) {
  FileContent bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

}  // namespace spillway::test
