#include <bit>
#include <utility>

#include "tools/bench/dropin_kernels/kernel.h"

namespace spillway::bench {
namespace {

constexpr std::size_t kColumns = 4096;  // floats: 16 KiB a row
constexpr std::size_t kBlock = 128;     // rows of a touch: 2 MiB

class Stencil final : public Kernel {
 public:
  Stencil(Memory& memory, std::size_t bytes)
      : memory_{memory},
        rows_{bytes / 2 / (kColumns * sizeof(float)) / kBlock * kBlock},
        from_{memory.array<float>(rows_ * kColumns)},
        to_{memory.array<float>(rows_ * kColumns)} {
    for (std::size_t i = 0; i < kColumns; ++i) from_[i] = to_[i] = 1.0F;  // a hot edge
  }

  void iterate() override {
    for (std::size_t row = 0; row < rows_; row += kBlock) {
      if (row + kBlock < rows_) memory_.read(from_ + (row + kBlock) * kColumns, kBlockBytes);
      memory_.read(from_ + row * kColumns, kBlockBytes);
      memory_.write(to_ + row * kColumns, kBlockBytes);
      for (std::size_t i = row; i < row + kBlock; ++i) {
        if (i > 0 && i + 1 < rows_) sweep_row(i);
      }
    }
    std::swap(from_, to_);
  }

  [[nodiscard]] std::uint64_t checksum() const override {
    std::uint64_t sum = 0;
    for (std::size_t row = 0; row < rows_; ++row) {
      sum = 31 * sum + std::bit_cast<std::uint32_t>(from_[row * kColumns + kColumns / 2]);
    }
    return sum;
  }

 private:
  static constexpr std::size_t kBlockBytes = kBlock * kColumns * sizeof(float);

  void sweep_row(std::size_t row) {
    const float* const at = from_ + row * kColumns;
    float* const out = to_ + row * kColumns;
    for (std::size_t i = 1; i + 1 < kColumns; ++i) {
      out[i] = 0.25F * (at[i - 1] + at[i + 1] + at[i - kColumns] + at[i + kColumns]);
    }
  }

  Memory& memory_;
  std::size_t rows_;
  float* from_;
  float* to_;
};

}  // namespace

std::unique_ptr<Kernel> make_stencil(Memory& memory, std::size_t bytes) {
  return std::make_unique<Stencil>(memory, bytes);
}

}  // namespace spillway::bench
