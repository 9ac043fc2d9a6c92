#include <algorithm>
#include <cstddef>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

// The rows of a window in a plane of adjacent channels.
struct Window {
  template <class CropOperation>
  Window(const Layout& layout, const CropOperation& op)
      : lanes{layout.lanes(op.x.image)},
        planes{op.x.batch * layout.padded(op.x.image.channels) / lanes},
        whole{op.x.image},
        window{op.y.image},
        offset{op.offset} {}

  // Elements of a row and of a plane, and the offset of the window's row `row` in a plane of x.
  [[nodiscard]] std::size_t row() const { return window.width * lanes; }
  [[nodiscard]] std::size_t plane() const { return window.height * row(); }
  [[nodiscard]] std::size_t whole_plane() const { return whole.height * whole.width * lanes; }
  [[nodiscard]] std::size_t begin(std::size_t row) const {
    return ((offset.height + row) * whole.width + offset.width) * lanes;
  }

  std::size_t lanes;
  std::size_t planes;  // of the batch
  nets::Shape whole;
  nets::Shape window;
  nets::Extent offset;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropForward& op) {
  return element_kernel_of(
      machine, op, [window = Window{machine.layout, op}](auto elements, const auto& operands) {
        const auto* const x = elements(operands.in.x);
        auto* const y = elements(operands.out.y);
#pragma omp parallel for schedule(static)
        for (std::size_t p = 0; p < window.planes; ++p) {
          for (std::size_t row = 0; row < window.window.height; ++row) {
            std::copy_n(x + p * window.whole_plane() + window.begin(row), window.row(),
                        y + p * window.plane() + row * window.row());
          }
        }
      });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const CropBackward& op) {
  return element_kernel_of(
      machine, op, [window = Window{machine.layout, op}](auto elements, const auto& operands) {
        const auto* const dy = elements(operands.in.dy);
        auto* const dx = elements(operands.out.dx);
#pragma omp parallel for schedule(static)
        for (std::size_t p = 0; p < window.planes; ++p) {
          auto* const plane = dx + p * window.whole_plane();
          std::fill_n(plane, window.whole_plane(), 0.F);
          for (std::size_t row = 0; row < window.window.height; ++row) {
            std::copy_n(dy + p * window.plane() + row * window.row(), window.row(),
                        plane + window.begin(row));
          }
        }
      });
}

}  // namespace spillway::host
