#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace spillway::um {

/// A source line. A default argument of type Caller names the line of the call.
struct Caller {
  const char* file;
  int line;

  static constexpr Caller here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Returns `sentence` made safe for a terminal, although it may quote users or files. Cuts words of
/// more than 1000 bytes, and texts of more than 4000, in the middle. Replaces control characters by
/// '?' and keeps UTF-8 characters whole.
[[nodiscard]] std::string shortened(std::string_view sentence);

/// A failure of the environment or an impossible request of the user. `what()` is one clear
/// sentence for the user, shortened(), without a source line.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view sentence) : std::runtime_error{shortened(sentence)} {}
};

/// A failed system call.
class SystemError final : public Error {
 public:
  SystemError(std::string_view sentence, int errno_value) : Error{sentence}, code_{errno_value} {}
  [[nodiscard]] int code() const { return code_; }  ///< errno of the call

 private:
  int code_;
};

/// A memory or a budget lacks room for a request.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// A broken contract: a bug in the program, never a mistake of its user.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws ContractError with the caller's file and line unless `holds`.
void expects(bool holds, std::string_view what, Caller where = Caller::here());

/// Returns an error that ends with the text of `errno_value`: "cannot open /x: Permission denied".
/// Adds advice when the process has too many open files.
[[nodiscard]] SystemError system_error(std::string_view what, int errno_value);

}  // namespace spillway::um
