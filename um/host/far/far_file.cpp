#include "um/host/far/far_file.h"

#include <unistd.h>

#include <cerrno>

#include "um/error.h"
#include "um/host/far/far_access.h"

namespace spillway::um {

void FarFile::read(Bytes offset, std::span<std::byte> to) {
  expect_far_access(size_, offset, to);
  auto at = static_cast<off_t>(offset.count());
  while (!to.empty()) {
    const ssize_t moved = pread(file_.descriptor(), to.data(), to.size(), at);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {  // zero: the file has lost its end
      const int reason = moved < 0 ? errno : EIO;
      throw system_error("cannot read far memory in " + file_.folder().string(), reason);
    }
    to = to.subspan(static_cast<std::size_t>(moved));
    at += moved;
  }
}

void FarFile::write(Bytes offset, std::span<const std::byte> from) {
  expect_far_access(size_, offset, from);
  auto at = static_cast<off_t>(offset.count());
  while (!from.empty()) {
    const ssize_t moved = pwrite(file_.descriptor(), from.data(), from.size(), at);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {  // zero: the file system takes no more, and says not why
      const int reason = moved < 0 ? errno : EIO;  // before the text is made, which may change it
      throw system_error("cannot write far memory in " + file_.folder().string(), reason);
    }
    from = from.subspan(static_cast<std::size_t>(moved));
    at += moved;
  }
}

std::string FarFile::description() const {
  return "file in " + file_.folder().string() +
         (file_.is_direct() ? ", direct I/O" : ", through the page cache");
}

}  // namespace spillway::um
