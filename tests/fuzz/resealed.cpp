#include "tests/fuzz/resealed.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "src/train/checkpoint/checkpoint.h"
#include "um/error.h"
#include "um/text/json_limits.h"

namespace spillway::fuzz {
namespace {

using nlohmann::json;

constexpr std::size_t kLargest = 1U << 16U;  // bytes; a limit for the time of a case

// Values next to the ends of ranges, of exact doubles, and of types.
const std::vector<json>& edges() {
  static const std::vector<json> all = [] {
    std::vector<json> values{-1,
                             -0.5,
                             0.0,
                             1e-320,
                             1e-300,
                             1e-46,
                             1e-45,
                             0.1,
                             0.5,
                             0.51,
                             0.999,
                             1.0,
                             1.5,
                             1e38,
                             3.5e38,
                             1e308,
                             true,
                             false,
                             nullptr,
                             "",
                             "a\nb",
                             ".bashrc",
                             "step-1.json",
                             json::array(),
                             json::object(),
                             0.99999999999999989};
    for (const unsigned bits : {0U, 1U, 3U, 8U, 10U, 16U, 20U, 24U, 31U, 32U, 40U, 53U, 62U, 63U}) {
      const std::uint64_t power = std::uint64_t{1} << bits;
      for (const std::uint64_t near : {power - 1, power, power + 1}) values.emplace_back(near);
    }
    values.emplace_back(UINT64_MAX);
    values.emplace_back(UINT64_MAX - 1);
    return values;
  }();
  return all;
}

void collect(json& value, std::vector<json*>& all) {
  all.push_back(&value);
  if (!value.is_structured()) return;
  for (json& part : value) collect(part, all);
}

class JsonMutation {
 public:
  JsonMutation(json& document, Generator& generator) : document_{document}, generator_{generator} {}

  void change_one() {
    std::vector<json*> all;
    collect(document_, all);
    json& value = *pick(all);
    switch (draw(6)) {
      case 0:
        value = json(*pick(all));  // from elsewhere in the document
        break;
      case 1:
        leave_out_of(value);
        break;
      case 2:
        if (value.is_array() && !value.empty()) value.push_back(json(value[draw(value.size())]));
        [[fallthrough]];
      case 3:
        if (value.is_number_unsigned()) {
          const auto number = value.get<std::uint64_t>();
          value = std::array{number + 1, number - 1, 2 * number, number / 2}.at(draw(4));
        }
        break;
      default:
        value = edges()[draw(edges().size())];
    }
  }

 private:
  std::size_t draw(std::size_t count) { return generator_() % count; }
  json* pick(const std::vector<json*>& all) { return all[draw(all.size())]; }

  void leave_out_of(json& value) {
    if (!value.is_structured() || value.empty()) return;
    auto at = value.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(draw(value.size())));
    value.erase(at);
  }

  json& document_;
  Generator& generator_;
};

// Returns the JSON document; nothing if a reader would refuse the text.
std::optional<json> parsed(const std::string& text) {
  if (text.size() > kLargest || um::beyond_json_limits(text)) return std::nullopt;
  json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_discarded() ? std::nullopt : std::optional{std::move(document)};
}

}  // namespace

std::optional<std::string> spoilt_json(const std::string& text, Generator& generator) {
  std::optional<json> document = parsed(text);
  if (!document || !document->is_structured()) return std::nullopt;
  for (std::uint64_t times = 1 + generator() % 3; times > 0; --times) {
    JsonMutation{*document, generator}.change_one();
  }
  return document->dump();
}

std::optional<std::string> resealed_manifest(const std::string& text) {
  std::optional<json> document = parsed(text);
  const bool is_manifest = document && document->is_object() &&
                           document->value("format", json{}) == "spillway-checkpoint";
  return is_manifest ? std::optional{sealed(std::move(*document))} : std::nullopt;
}

std::optional<std::string> restamped(const std::string& text, const std::string& known) {
  std::optional<json> document = parsed(text);
  const std::optional<json> other = parsed(known);
  if (!document || !other || !document->is_object() || !other->contains("graph")) {
    return std::nullopt;
  }
  (*document)["graph"] = other->at("graph");
  return document->dump();
}

}  // namespace spillway::fuzz
