#pragma once

namespace spillway::dropin {

/// Whether the program's own CUDA runtime is part of it, so that its calls never get here: the
/// executable has code for GPUs, or the driver is loaded, and no shared runtime is. A program that
/// is small enough to have neither yet is found out when it ends.
[[nodiscard]] bool is_bypassed() noexcept;

}  // namespace spillway::dropin
