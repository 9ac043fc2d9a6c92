#include "tools/golden/cudnn_listing.h"

#include <array>
#include <utility>

#include "nets/families/network_catalogue.h"
#include "src/cuda/cudnn/device_less_planning.h"

namespace spillway::golden {
namespace {

constexpr std::size_t kBatch = 64;
constexpr um::Bytes kMaxWorkspace{1U << 30U};

}  // namespace

std::string cudnn_version_line() { return "cudnn " + std::to_string(cudnnGetVersion()); }

std::vector<std::string> cudnn_listing(std::string_view properties) {
  using spillway::Precision;
  constexpr std::array<std::pair<std::string_view, Precision>, 3> kPrecisions{
      {{"fp32", Precision::kFp32}, {"tf32", Precision::kTf32}, {"bf16", Precision::kBf16}}};
  std::vector<std::string> lines{cudnn_version_line(),
                                 "# write_cudnn_listing tests/golden/h200_device_properties.json "
                                 ">tests/golden/cudnn_h200.txt"};
  for (const std::string net : {"vgg16", "resnet50"}) {
    for (const auto& [name, precision] : kPrecisions) {
      const cuda::EngineRules rules{.precision = precision, .max_workspace = kMaxWorkspace};
      for (const auto& planned :
           plan_convolutions(properties, rules, nets::build_network(net), kBatch)) {
        lines.push_back(net + " " + std::string{name} + " " + to_line(planned));
      }
    }
  }
  return lines;
}

}  // namespace spillway::golden
