#pragma once

#include <string_view>

namespace spillway::um {

/// Prepares the calling thread, just started, for the work of the host device: gives it a name of
/// at most 15 characters, leaves the program's signals to the program's threads, lets it sleep to
/// the microsecond, and lets it use every CPU that some thread of the process may use. (OpenMP
/// binds the thread that meets it first to one place, and threads started by that one would all
/// share the place with it.)
void prepare_worker_thread(std::string_view name) noexcept;

}  // namespace spillway::um
