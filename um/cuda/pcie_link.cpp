#include "um/cuda/pcie_link.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace spillway::um {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::optional<std::string> pcie_link(const std::string& bus, const std::filesystem::path& devices) {
  std::string folder = bus;
  std::ranges::transform(folder, folder.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  const auto link = [&](const std::string& which) {
    const std::string speed = first_line(devices / folder / (which + "_link_speed"));
    const std::string width = first_line(devices / folder / (which + "_link_width"));
    return speed.empty() || width.empty() ? std::string{} : speed + " x" + width;
  };
  const std::string now = link("current");
  const std::string max = link("max");
  if (now.empty()) return std::nullopt;
  return max.empty() ? now : now + " (of " + max + ")";
}

}  // namespace spillway::um
