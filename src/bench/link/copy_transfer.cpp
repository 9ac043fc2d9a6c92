#include "src/bench/link/copy_transfer.h"

#include <utility>

#include "src/bench/link/move_timer.h"

namespace spillway {

// Near and far memory each have a half that comes and one that leaves.
CopyTransfer::CopyTransfer(um::Device& device, um::Bytes size, const um::ManagedOptions& options)
    : size_{size},
      space_{device.make_copy_space(
          {.size = 2 * size, .near = 2 * size, .far = options.far, .link = options.link})} {
  // A file gives zeros without reading where it was never written.
  MoveTimer timer;
  timer.start([&](um::Completion done) {
    space_->copies().offload(space_->near(), um::Bytes{}, std::move(done));
  });
  static_cast<void>(timer.wait());
}

TransferTime CopyTransfer::move(Direction direction) {
  const um::Range near = space_->near();
  MoveTimer timer;
  if (direction != Direction::kOut) {
    timer.start([&](um::Completion done) {
      space_->copies().prefetch(um::Bytes{}, near.first(size_.count()), std::move(done));
    });
  }
  if (direction != Direction::kIn) {
    timer.start([&](um::Completion done) {
      space_->copies().offload(near.last(size_.count()), size_, std::move(done));
    });
  }
  return timer.wait();
}

}  // namespace spillway
