#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace spillway::um {

/// A line of source. Default arguments of type Caller name the line of the call.
struct Caller {
  const char* file;
  int line;

  static constexpr Caller here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// `sentence` fit for a terminal, whatever a user or a file gave that it echoes: every word of more
/// than 1000 bytes, and the whole of more than 4000, is cut in the middle, and a '?' stands for
/// each control character. Characters of UTF-8 stay whole.
[[nodiscard]] std::string shortened(std::string_view sentence);

/// The environment failed or the user asked for what cannot be done. `what()` is one clear sentence
/// for the user, shortened(), without a source line.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view sentence) : std::runtime_error{shortened(sentence)} {}
};

/// A call of the system failed.
class SystemError final : public Error {
 public:
  SystemError(std::string_view sentence, int errno_value) : Error{sentence}, code_{errno_value} {}
  [[nodiscard]] int code() const { return code_; }  ///< its errno

 private:
  int code_;
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

/// One whose sentence ends with the text of `errno_value`: "cannot open /x: Permission
/// denied"; where the process has too many open files, with what to do about it.
[[nodiscard]] SystemError system_error(std::string_view what, int errno_value);

}  // namespace spillway::um
