#pragma once

#include <cstddef>
#include <string>

namespace spillway::nets {

/// Throws: um::Error that names the network where its heads do not divide the numbers of a token.
void expect_divided(const std::string& network, std::size_t width, std::size_t heads);

}  // namespace spillway::nets
