#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "um/files/folder.h"

namespace spillway::um {

/// A file that is written next to the file it replaces, then replaces it atomically. Readers find
/// the old content or the new, even after a power cut. Its temporary name is random, so that an
/// attacker cannot put a link there.
class ReplacedFile {
 public:
  /// Creates a file with a new name in the folder of `path`. Throws: Error when that fails.
  explicit ReplacedFile(const std::filesystem::path& path);
  /// As above for the file `name` of `folder`, which must outlive this object.
  ReplacedFile(const Folder& folder, std::string name);
  /// Removes the temporary file unless it has taken its place.
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ReplacedFile(ReplacedFile&&) = delete;
  ReplacedFile& operator=(ReplacedFile&&) = delete;

  /// Appends. Throws: Error, for example when the disk is full.
  void write(std::span<const std::byte> bytes);

  /// Waits until the content is on the disk. Only take_place() may be called next. Throws: Error.
  void flush();
  /// Renames the flushed file to its final name; the name is durable once the folder is synced. No
  /// call may follow. Throws: Error.
  void take_place();
  /// Calls flush() and take_place(), then syncs the folder. No call may follow. Throws: Error.
  void commit();

 private:
  ReplacedFile(std::unique_ptr<Folder> own, std::string name);
  void make_partial();
  void close_descriptor();

  std::unique_ptr<Folder> own_;  // unless a folder was given
  const Folder& folder_;
  std::string name_;
  std::string partial_;
  int descriptor_ = -1;
  bool is_flushed_ = false;
  bool is_in_place_ = false;
};

/// Returns which file a leftover of a killed ReplacedFile belongs to: "file" for
/// "file.0123456789abcdef.partial". Returns an empty string for other names.
[[nodiscard]] std::string_view replaced_by(std::string_view partial);

/// Writes `text` to the file that a user named. Replaces a regular file atomically and follows a
/// link, which stays. Writes directly into a device, a named pipe, or a file that cannot be
/// replaced in its folder. Throws: Error.
void write_output(const std::string& path, std::string_view text);

/// Returns the final target of links at `path`, even if it does not exist.
[[nodiscard]] std::filesystem::path place_of(const std::filesystem::path& path);

}  // namespace spillway::um
