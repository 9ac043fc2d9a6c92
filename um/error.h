#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "um/caller.h"

namespace spillway::um {

/// The environment failed or the user asked for what cannot be done. `what()` is one clear sentence
/// for the user, without a source line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A memory or a budget has no room for what was asked for.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A caller broke a contract: a bug in the program, never a mistake of its user.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws ContractError with the caller's file and line unless `holds`.
void expects(bool holds, std::string_view what, Caller where = Caller::here());

/// An Error whose sentence ends with the text of `errno_value`: "cannot open /x: Permission
/// denied".
[[nodiscard]] Error system_error(std::string_view what, int errno_value);

}  // namespace spillway::um
