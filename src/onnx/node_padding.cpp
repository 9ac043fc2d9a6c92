#include "src/onnx/node_padding.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "nets/limits.h"
#include "nets/window.h"
#include "src/onnx/graph_reader.h"
#include "src/onnx/node_error.h"

namespace spillway {
namespace {

using Integers = std::vector<std::int64_t>;

// A list of `count` numbers from `least` on; `otherwise` where it is left out.
Integers list_attribute(const OnnxNode& node, const std::string& word, std::size_t count,
                        std::int64_t least, const Integers& otherwise) {
  const auto found = node.attributes.find(word);
  if (found == node.attributes.end()) return otherwise;
  const auto* const list = std::get_if<Integers>(&found->second);
  const bool is_known = list != nullptr && list->size() == count &&
                        std::ranges::all_of(*list, [&](std::int64_t each) {
                          return each >= least && each <= std::int64_t{nets::kLargestSide};
                        });
  if (!is_known) throw attribute_error(node, word);
  return *list;
}

// What a node does along the height of an image, or along its width.
struct Side {
  const char* name;
  std::size_t image;
  std::size_t kernel;  // all that it covers
  std::size_t stride;
  std::size_t output_padding = 0;
  std::size_t before = 0;  // the padding
  std::size_t behind = 0;

  [[nodiscard]] std::size_t windows(bool rounds_up) const {
    const std::size_t padded = image + before + behind;
    if (padded < kernel) return 0;
    const std::size_t full = (padded - kernel) / stride + 1;
    const bool has_rest = (padded - kernel) % stride != 0 && full * stride < image + before;
    return rounds_up && has_rest ? full + 1 : full;
  }
  // Those of a layer that pads both sides as this one does before the image.
  [[nodiscard]] std::size_t windows_of_layer(bool rounds_up) const {
    const nets::Window window{.kernel = kernel, .stride = stride, .padding = before};
    return rounds_up ? nets::positions_rounded_up(image, window) : nets::positions(image, window);
  }
};

using Sides = std::array<Side, 2>;

class NodePadding {
 public:
  NodePadding(const OnnxNode& node, const nets::Shape& image,
              const std::optional<nets::Extent>& kernel)
      : node_{node}, image_{image}, kernel_{kernel} {}

  [[nodiscard]] OnnxNode even() const {
    OnnxNode even = node_;
    even.attributes.erase("auto_pad");
    const std::string automatic = auto_pad();
    const Integers pads = list_attribute(node_, "pads", 4, 0, {0, 0, 0, 0});
    if (automatic == "NOTSET" && pads[0] == pads[2] && pads[1] == pads[3]) return even;

    Sides sides = unpadded_sides();
    if (automatic == "NOTSET") {
      for (std::size_t i = 0; i < 2; ++i) {
        sides[i].before = static_cast<std::size_t>(pads[i]);
        sides[i].behind = static_cast<std::size_t>(pads[i + 2]);
      }
    } else {
      for (Side& side : sides) pad(side, automatic);
      expect_padded_once(sides, pads);
    }
    if (is_transposed()) {
      even.attributes["output_padding"] = even_output_padding(sides);
    } else {
      const bool rounds_up = rounds_up_evenly(sides, automatic);
      if (is_pool()) even.attributes["ceil_mode"] = std::int64_t{rounds_up ? 1 : 0};
    }
    even.attributes["pads"] = list_of(sides, {&Side::before, &Side::before});
    return even;
  }

 private:
  [[nodiscard]] bool is_transposed() const { return node_.type == "ConvTranspose"; }
  [[nodiscard]] bool is_pool() const { return node_.type.ends_with("Pool"); }

  [[nodiscard]] std::string auto_pad() const {
    const auto found = node_.attributes.find("auto_pad");
    if (found == node_.attributes.end()) return "NOTSET";
    const auto* const text = std::get_if<std::string>(&found->second);
    for (const char* const known : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}) {
      if (text != nullptr && *text == known) return known;
    }
    throw attribute_error(node_, "auto_pad");
  }

  [[nodiscard]] Sides unpadded_sides() const {
    const auto pair = [&](const char* word, std::int64_t least, std::int64_t otherwise) {
      return list_attribute(node_, word, 2, least, {otherwise, otherwise});
    };
    const nets::Extent own = kernel_.value_or(nets::square(1));
    const Integers kernel = list_attribute(
        node_, "kernel_shape", 2, 1,
        {static_cast<std::int64_t>(own.height), static_cast<std::int64_t>(own.width)});
    const Integers stride = pair("strides", 1, 1);
    const Integers dilation = pair("dilations", 1, 1);
    const Integers more = pair("output_padding", 0, 0);
    const auto side = [&](std::size_t i, const char* name, std::size_t image) {
      return Side{.name = name,
                  .image = image,
                  .kernel = static_cast<std::size_t>((kernel[i] - 1) * dilation[i] + 1),
                  .stride = static_cast<std::size_t>(stride[i]),
                  .output_padding = static_cast<std::size_t>(more[i])};
    };
    return {side(0, "height", image_.height), side(1, "width", image_.width)};
  }

  // As ONNX's auto_pad says: with SAME, there is a window for each stride of the image.
  void pad(Side& side, const std::string& automatic) const {
    if (automatic == "VALID") return;
    std::size_t padding = 0;
    if (is_transposed()) {
      const std::size_t covered = side.kernel + side.output_padding;
      if (covered < side.stride) throw attribute_error(node_, "auto_pad");
      padding = covered - side.stride;
    } else {
      const std::size_t windows = (side.image + side.stride - 1) / side.stride;
      const std::size_t covered = (windows - 1) * side.stride + side.kernel;
      padding = covered - std::min(covered, side.image);
    }
    side.before = side.behind = padding / 2;
    (automatic == "SAME_UPPER" ? side.behind : side.before) += padding % 2;
    // Versions of ONNX differ in which side has more.
    if (is_transposed() && padding % 2 != 0) throw uneven(side);
  }

  void expect_padded_once(const Sides& sides, const Integers& pads) const {
    if (!node_.attributes.contains("pads")) return;
    if (pads == list_of(sides, {&Side::before, &Side::behind})) return;
    throw node_error(node_,
                     "says its padding twice, as auto_pad and as pads; export it with pads alone");
  }

  // Whether the layer has to round up for the windows of `sides`.
  [[nodiscard]] bool rounds_up_evenly(const Sides& sides, const std::string& automatic) const {
    const bool rounds_up = is_pool() && integer_attribute(node_, "ceil_mode", 0) == 1;
    const bool is_disputed =  // what the last window is, or what it is divided by
        automatic != "NOTSET" || integer_attribute(node_, "count_include_pad", 0) == 1;
    for (const Side& side : sides) {
      if (!rounds_up || !is_disputed || side.windows(true) == side.windows(false)) continue;
      throw node_error(node_,
                       "rounds up beside a padding that makes programs differ about its last "
                       "window; export it without ceil_mode");
    }
    const auto has_windows = [&](const Side& side, bool layer_rounds_up) {
      return side.windows_of_layer(layer_rounds_up) == side.windows(rounds_up);
    };
    const auto is_even = [&](bool layer_rounds_up) {
      return std::ranges::all_of(
          sides, [&](const Side& side) { return has_windows(side, layer_rounds_up); });
    };
    if (is_even(false)) return false;
    if (is_pool() && is_even(true)) return true;
    throw uneven(has_windows(sides[0], false) ? sides[1] : sides[0]);
  }

  // A layer cuts off as much behind as before, so that it makes more than this node at the end.
  [[nodiscard]] Integers even_output_padding(const Sides& sides) const {
    Integers more;
    for (const Side& side : sides) {
      if (side.output_padding + side.before < side.behind) throw uneven(side);
      more.push_back(static_cast<std::int64_t>(side.output_padding + side.before - side.behind));
    }
    return more;
  }

  [[nodiscard]] um::Error uneven(const Side& side) const {
    return node_error(node_, "pads the " + std::string{side.name} + " by " +
                                 std::to_string(side.before) + " before and " +
                                 std::to_string(side.behind) +
                                 " behind, but layers pad both sides alike; give both the same "
                                 "padding where the network is made, and export it again");
  }

  static Integers list_of(const Sides& sides, std::array<std::size_t Side::*, 2> ends) {
    Integers list;
    for (const auto end : ends) {
      for (const Side& side : sides) list.push_back(static_cast<std::int64_t>(side.*end));
    }
    return list;
  }

  const OnnxNode& node_;
  const nets::Shape& image_;
  const std::optional<nets::Extent>& kernel_;
};

}  // namespace

OnnxNode with_even_padding(const OnnxNode& node, const nets::Shape& image,
                           const std::optional<nets::Extent>& kernel) {
  return NodePadding{node, image, kernel}.even();
}

}  // namespace spillway
