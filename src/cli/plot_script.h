#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace spillway::cli {

/// Checks that Python with matplotlib is there, before a long sweep. Throws: um::Error that says
/// what to install.
void expect_plotting();

/// Draws the results of a sweep into the file `picture`. `of` is what to draw, in the words of
/// tools/plot/sweep; empty: its default. Throws: um::Error with the script's last words when it
/// fails.
void draw_sweep(const nlohmann::json& sweep, const std::string& picture, const std::string& of);

}  // namespace spillway::cli
