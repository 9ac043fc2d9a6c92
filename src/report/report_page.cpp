#include "src/report/report_page.h"

#include <map>
#include <string_view>

#include "src/report/assets.h"
#include "um/error.h"

namespace spillway {

std::string script_json(const nlohmann::json& data) {
  constexpr int kOnOneLine = -1;
  constexpr bool kAscii = true;
  const std::string text =
      data.dump(kOnOneLine, ' ', kAscii, nlohmann::json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {  // of </script and <!--; outside strings JSON has none
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string make_page(const nlohmann::json& data) {
  using namespace report_assets;
  const std::string json = script_json(data);
  const std::map<std::string_view, std::string_view> parts{
      {"style", kStyle}, {"license", kLicense}, {"d3", kD3}, {"script", kScript}, {"data", json}};
  std::string page;
  std::string_view rest = kTemplate;
  for (std::size_t at = rest.find("{{"); at != std::string_view::npos; at = rest.find("{{")) {
    page += rest.substr(0, at);
    const std::size_t end = rest.find("}}", at);
    um::expects(end != std::string_view::npos, "each {{ in the template has its }}");
    page += parts.at(rest.substr(at + 2, end - at - 2));
    rest.remove_prefix(end + 2);
  }
  page += rest;
  return page;
}

}  // namespace spillway
