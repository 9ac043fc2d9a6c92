#include <algorithm>
#include <bit>
#include <cmath>

#include "tools/bench/dropin_kernels/kernel.h"

namespace spillway::bench {
namespace {

constexpr std::size_t kSide = 256;
constexpr std::size_t kTile = kSide * kSide;  // floats: 256 KiB

class Matmul final : public Kernel {
 public:
  Matmul(Memory& memory, std::size_t bytes)
      : memory_{memory},
        tiles_{static_cast<std::size_t>(
            std::sqrt(static_cast<double>(bytes) / (3.0 * kTile * sizeof(float))))},
        a_{memory.array<float>(tiles_ * tiles_ * kTile)},
        b_{memory.array<float>(tiles_ * tiles_ * kTile)},
        c_{memory.array<float>(tiles_ * tiles_ * kTile)} {
    for (std::size_t i = 0; i < tiles_ * tiles_ * kTile; ++i) {
      a_[i] = static_cast<float>(i % 13) - 6.0F;
      b_[i] = static_cast<float>(i % 7) - 3.0F;
    }
  }

  void iterate() override {
    for (std::size_t i = 0; i < tiles_; ++i) {
      for (std::size_t j = 0; j < tiles_; ++j) {
        float* const c = tile(c_, i, j);
        memory_.write(c, kTile * sizeof(float));
        std::fill(c, c + kTile, 0.0F);
        for (std::size_t k = 0; k < tiles_; ++k) {
          memory_.read(tile(a_, i, k), kTile * sizeof(float));
          memory_.read(tile(b_, k, j), kTile * sizeof(float));
          multiply(tile(a_, i, k), tile(b_, k, j), c);
        }
      }
    }
  }

  [[nodiscard]] std::uint64_t checksum() const override {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < tiles_ * tiles_ * kTile; i += 997) {
      sum = 31 * sum + std::bit_cast<std::uint32_t>(c_[i]);
    }
    return sum;
  }

 private:
  [[nodiscard]] float* tile(float* matrix, std::size_t row, std::size_t column) const {
    return matrix + (row * tiles_ + column) * kTile;
  }

  static void multiply(const float* a, const float* b, float* c) {
    for (std::size_t i = 0; i < kSide; ++i) {
      for (std::size_t k = 0; k < kSide; ++k) {
        const float factor = a[i * kSide + k];
        for (std::size_t j = 0; j < kSide; ++j) c[i * kSide + j] += factor * b[k * kSide + j];
      }
    }
  }

  Memory& memory_;
  std::size_t tiles_;
  float* a_;
  float* b_;
  float* c_;
};

}  // namespace

std::unique_ptr<Kernel> make_matmul(Memory& memory, std::size_t bytes) {
  return std::make_unique<Matmul>(memory, bytes);
}

}  // namespace spillway::bench
