#pragma once

#include <string>

#include "um/error.h"

namespace spillway::cli {

/// What `parse` says when it throws um::Error, else nothing: makes a parser a check of CLI11's, so
/// that a malformed value is bad usage.
template <typename Parse>
[[nodiscard]] std::string complaint_of(const Parse& parse) {
  try {
    parse();
  } catch (const um::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace spillway::cli
