#include "tools/gpu/engine_table.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "nets/shape.h"
#include "um/error.h"

namespace spillway::gpu {
namespace {

using nlohmann::json;

template <class Op, class... Ops>
constexpr bool kIsOneOf = (std::is_same_v<Op, Ops> || ...);

template <class Op>
constexpr std::string_view pass_of() {
  if (kIsOneOf<Op, ConvolutionForward, TransposedConvolutionForward>) return "forward";
  if (kIsOneOf<Op, ConvolutionBackwardData, TransposedConvolutionBackwardData>) {
    return "backward_data";
  }
  return "backward_weights";
}

std::string to_string(const nets::Extent& extent) {
  return std::to_string(extent.height) + "x" + std::to_string(extent.width);
}

// Its pass and geometry.
json describe(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> json {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (requires { op.geometry.kernel; }) {
          const auto& g = op.geometry;
          json result{{"pass", pass_of<Op>()},
                      {"transposed",
                       std::is_same_v<std::decay_t<decltype(g)>, TransposedConvolutionGeometry>},
                      {"x", nets::to_string(g.x.image)},
                      {"y", nets::to_string(g.y.image)},
                      {"kernel", to_string(g.kernel)},
                      {"stride", to_string(g.stride)},
                      {"dilation", to_string(g.dilation)},
                      {"groups", g.groups},
                      {"bias", g.bias}};
          if constexpr (requires { op.relu; }) result["relu"] = op.relu;
          return result;
        }
        throw um::ContractError{"a convolution"};
      },
      operation);
}

double seconds(um::Nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

json engine_table(const DistinctConvolutions& convolutions, const prefetch::Profile& times) {
  json table = json::array();
  double by_fastest = 0;
  double by_smallest = 0;
  for (std::size_t t = 0; t < convolutions.tasks.size(); ++t) {
    const std::vector<prefetch::Algorithm>& algorithms =
        convolutions.step.graph.tasks[t].algorithms;
    const std::vector<um::Nanoseconds>& durations = times.durations.at(t);
    json engines = json::array();
    for (std::size_t a = 0; a < algorithms.size(); ++a) {
      engines.push_back({{"name", algorithms[a].name},
                         {"workspace_bytes", algorithms[a].workspace.count()},
                         {"seconds", seconds(durations.at(a))}});
    }
    const auto fastest = std::ranges::min_element(durations);
    const auto count = static_cast<double>(convolutions.tasks[t].size());
    by_fastest += count * seconds(*fastest);
    by_smallest += count * seconds(durations.front());
    json entry = describe(convolutions.step.launches[t].operation);
    entry["tasks"] = convolutions.tasks[t];
    entry["engines"] = std::move(engines);
    entry["fastest"] = algorithms[static_cast<std::size_t>(fastest - durations.begin())].name;
    table.push_back(std::move(entry));
  }
  return {{"convolutions", std::move(table)},
          {"seconds_by_fastest", by_fastest},
          {"seconds_by_least_workspace", by_smallest}};
}

}  // namespace spillway::gpu
