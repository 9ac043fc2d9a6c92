#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace spillway::cli {

/// Throws: um::Error that says what to install where there is no Python with matplotlib; so that a
/// long sweep does not find out at its end.
void expect_plotting();

/// Draws what a sweep gave into the file `picture`. `of` is what to draw, as tools/plot/sweep names
/// it; empty: its choice. Throws: um::Error with the script's last words when it fails.
void draw_sweep(const nlohmann::json& sweep, const std::string& picture, const std::string& of);

}  // namespace spillway::cli
