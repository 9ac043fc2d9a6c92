#pragma once

namespace spillway::cli {

/// Gives each of the descriptors 0 to 2 that the program was started without a stream that refuses
/// to be read or written, so that no file it opens is taken for one of them. The first thing
/// main() does.
void open_missing_streams() noexcept;

/// Flushes standard output. Throws: um::Error when not all that was written to it has arrived.
void expect_output_written();

}  // namespace spillway::cli
