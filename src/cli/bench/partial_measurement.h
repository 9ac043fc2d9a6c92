#pragma once

#include <exception>
#include <functional>
#include <stop_token>

#include "src/cli/terminal/interrupt.h"

namespace spillway::cli {

/// A measurement whose figures so far are to be written however it ends: whole, by Ctrl-C, or by a
/// failure, which waits until they are. While it lives, a first Ctrl-C does not end the program,
/// and once the figures are being written it is ignored. Where writing them fails too, only that is
/// told. At most one at a time.
class PartialMeasurement {
 public:
  /// Runs `measure`, which is to throw Interrupted when `stop` is requested, to its end.
  explicit PartialMeasurement(const std::function<void(const std::stop_token& stop)>& measure);

  /// Throws: what `measure` did, unless that was Interrupted.
  void expect_no_failure() const;
  /// Throws: Interrupted when `measure` did.
  void expect_not_interrupted() const;

 private:
  Interrupt interrupt_;
  std::exception_ptr failure_;
  bool is_interrupted_ = false;
};

}  // namespace spillway::cli
