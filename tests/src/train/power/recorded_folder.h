#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::test {

/// One call of the system that changes a folder or a file in it.
struct FileCall {
  enum class Kind : std::uint8_t {
    kCreate,
    kWrite,
    kSyncFile,
    kRename,
    kRemove,
    kSyncFolder,
    kAcknowledge,  ///< no call: what was saved up to here must stay
  };
  Kind kind;
  std::size_t file = 0;  ///< the number of the file, which its names come and go from
  std::string name;      ///< the old one of a file that gets another
  std::string to;        ///< the new one
  std::string bytes;     ///< that are written, at the end
  std::uint64_t step = 0;
};

/// While it lives, takes notes of every such call in a folder; the calls themselves are made. It
/// sees them because a program's own openat(), write(), fsync(), renameat(), unlinkat() and close()
/// come before those of the C library. At most one at a time; one thread.
class RecordedFolder {
 public:
  explicit RecordedFolder(const std::string& folder);
  ~RecordedFolder();
  RecordedFolder(const RecordedFolder&) = delete;
  RecordedFolder& operator=(const RecordedFolder&) = delete;

  /// The checkpoint of `step` has been saved, as far as whoever saved it knows.
  void acknowledge(std::uint64_t step);
  [[nodiscard]] const std::vector<FileCall>& calls() const;
};

}  // namespace spillway::test
