#include "um/error.h"

#include <system_error>

namespace spillway::um {

void expects(bool holds, std::string_view what, Caller where) {
  if (holds) return;
  throw ContractError{std::string{where.file} + ":" + std::to_string(where.line) +
                      ": expected: " + std::string{what}};
}

Error system_error(std::string_view what, int errno_value) {
  return Error{std::string{what} + ": " + std::generic_category().message(errno_value)};
}

}  // namespace spillway::um
