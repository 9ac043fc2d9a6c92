#pragma once

namespace spillway::um {

/// The double whose shortest decimal is that of `value`: for 0.01F it is 0.01, where a conversion
/// gives 0.009999999776482582. For JSON, whose numbers are doubles.
[[nodiscard]] double shortest_decimal(float value);

}  // namespace spillway::um
