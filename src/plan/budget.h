#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "prefetch/planner.h"
#include "um/bytes.h"

namespace spillway {

/// A near-memory budget as a user gives it.
class Budget {
 public:
  /// Reads "512MiB", "40%" (of the resident need), "min", "min+20%" (of the way from the smallest
  /// feasible budget to the resident need) or "auto". Throws: um::Error with what is allowed.
  [[nodiscard]] static Budget parse(std::string_view text);

  /// The budget in bytes. "auto" is what a run that moves nothing needs with any algorithms,
  /// where `available` has room for it, else what is available, less a tenth for everything else.
  /// Never rounds below the smallest feasible budget what was given relative to it.
  [[nodiscard]] um::Bytes resolve(const prefetch::NearNeed& need, um::Bytes available) const;

  /// True when it was given in bytes.
  [[nodiscard]] bool is_absolute() const { return std::holds_alternative<Exact>(amount_); }

 private:
  struct Automatic {};
  struct Exact {
    um::Bytes size;
  };
  struct OfNeed {
    double fraction;
  };
  struct AboveSmallest {
    double fraction;
  };
  using Amount = std::variant<Automatic, Exact, OfNeed, AboveSmallest>;

  explicit Budget(Amount amount) : amount_{amount} {}

  Amount amount_;
};

}  // namespace spillway
