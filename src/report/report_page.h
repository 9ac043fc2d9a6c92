#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace spillway {

/// `data` as JSON that may stand between <script> tags: nothing in it ends the script or begins a
/// comment, and it is all ASCII. What is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string script_json(const nlohmann::json& data);

/// One HTML page with everything in it, which opens from a file without a network, and shows
/// `data`, as report_data() makes it.
[[nodiscard]] std::string make_page(const nlohmann::json& data);

}  // namespace spillway
