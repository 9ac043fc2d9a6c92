#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "um/files/folder.h"

namespace spillway::um {

/// A file that is written beside the one it replaces and takes its place as a whole: whoever opens
/// the path, even after a power cut, finds the old content or the new. Nobody can know the name
/// beside, so nobody can put a link there.
class ReplacedFile {
 public:
  /// Makes a file of a new name in the folder of `path`. Throws: Error when it cannot be made.
  explicit ReplacedFile(const std::filesystem::path& path);
  /// The same for the file `name` of `folder`, which must outlive it.
  ReplacedFile(const Folder& folder, std::string name);
  /// Removes what was written unless it has taken its place.
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ReplacedFile(ReplacedFile&&) = delete;
  ReplacedFile& operator=(ReplacedFile&&) = delete;

  /// Appends. Throws: Error, for example when the disk is full.
  void write(std::span<const std::byte> bytes);

  /// Waits until the content is on the disk. Only take_place() may follow. Throws: Error.
  void flush();
  /// Gives the flushed file its name, which is on the disk once the folder is. Nothing may follow.
  /// Throws: Error.
  void take_place();
  /// flush(), take_place(), and the folder on the disk. Nothing may follow. Throws: Error.
  void commit();

 private:
  ReplacedFile(std::unique_ptr<Folder> own, std::string name);
  void make_partial();
  void close_descriptor();

  std::unique_ptr<Folder> own_;  // where no folder was given
  const Folder& folder_;
  std::string name_;
  std::string partial_;
  int descriptor_ = -1;
  bool is_flushed_ = false;
  bool is_in_place_ = false;
};

/// Whether a file of this name is what a program that was killed left of a ReplacedFile, and of
/// which: "file" for "file.0123456789abcdef.partial". Empty for other names.
[[nodiscard]] std::string_view replaced_by(std::string_view partial);

/// Writes `text` to the file that a user named: an ordinary file is replaced as a whole, and a link
/// stays and is followed. A device or a named pipe is written into, as is a file in a folder that
/// takes no new ones. Throws: Error.
void write_output(const std::string& path, std::string_view text);

/// Where a link at `path` leads in the end, also when nothing is there.
[[nodiscard]] std::filesystem::path place_of(const std::filesystem::path& path);

}  // namespace spillway::um
