#include <algorithm>
#include <string>
#include <type_traits>

#include "src/cuda/kernels/channel_tile.cuh"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/row_walk.cuh"
#include "src/cuda/layout/layout.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

// Saved statistics of a row: its mean if rows are centred, and its scale.
struct Statistics {
  float mean;
  float scale;
};

__device__ void keep(float* saved, std::size_t row, bool is_centred, Statistics of) {
  if (is_centred) saved[2 * row] = of.mean;
  saved[is_centred ? 2 * row + 1 : row] = of.scale;
}
__device__ Statistics kept(const float* saved, std::size_t row, bool is_centred) {
  if (is_centred) return {.mean = saved[2 * row], .scale = saved[2 * row + 1]};
  return {.mean = 0.F, .scale = saved[row]};
}

// How a block's threads share rows: a team of warps has a row at a time, and each of its threads up
// to `held` groups of the row, which it keeps while the sums over the row are added up.
struct RowTeams {
  unsigned warps;  // per team
  unsigned held;

  [[nodiscard]] constexpr unsigned count() const { return kThreads / kWarp / warps; }
  [[nodiscard]] constexpr std::size_t blocks(std::size_t rows) const {
    return (rows + count() - 1) / count();
  }
};
constexpr unsigned kUsualHeld = 4;
constexpr unsigned kMostHeld = 8;
constexpr std::size_t kWidestRow = std::size_t{kThreads} * kMostHeld * kGroupLanes;

RowTeams teams_of(const TokenMatrix& m) {
  if (m.stride > kWidestRow) {
    throw um::Error{"a norm over rows of " + std::to_string(m.channels) +
                    " numbers is too wide for a GPU; it takes up to " + std::to_string(kWidestRow)};
  }
  const std::size_t groups = m.stride / kGroupLanes;
  RowTeams teams{.warps = 1, .held = kMostHeld};
  while (teams.warps < kThreads / kWarp && groups > teams.warps * kWarp * kUsualHeld) {
    teams.warps *= 2;
  }
  const std::size_t threads = std::size_t{teams.warps} * kWarp;
  const auto held = static_cast<unsigned>((groups + threads - 1) / threads);
  if (held <= kUsualHeld) teams.held = held;
  return teams;
}

// Calls visit(constant) with the number of held groups.
template <class Visit>
void with_held(unsigned held, const Visit& visit) {
  switch (held) {
    case 1:
      return visit(std::integral_constant<int, 1>{});
    case 2:
      return visit(std::integral_constant<int, 2>{});
    case 3:
      return visit(std::integral_constant<int, 3>{});
    case kUsualHeld:
      return visit(std::integral_constant<int, kUsualHeld>{});
    default:
      return visit(std::integral_constant<int, kMostHeld>{});
  }
}

// A thread of a team.
struct Member {
  unsigned team;
  unsigned first;  // group
  unsigned step;   // to the next group

  __device__ explicit Member(const RowTeams& teams)
      : team{threadIdx.x / kWarp / teams.warps},
        first{threadIdx.x - team * teams.warps * kWarp},
        step{teams.warps * kWarp} {}
  [[nodiscard]] __device__ unsigned group(int held) const {
    return first + static_cast<unsigned>(held) * step;
  }
};

// Two sums over the threads of a team.
struct RowSums {
  float first;
  float second;
};
// All threads of the block must call it.
__device__ RowSums add_up(const RowTeams& teams, RowSums sums) {
  __shared__ RowSums of_warps[kThreads / kWarp];
  sums = {.first = warp_sum(sums.first), .second = warp_sum(sums.second)};
  if (teams.warps == 1) return sums;
  const unsigned warp = threadIdx.x / kWarp;
  __syncthreads();  // all have read the sums of the previous call
  if (threadIdx.x % kWarp == 0) of_warps[warp] = sums;
  __syncthreads();
  const unsigned begin = warp / teams.warps * teams.warps;
  RowSums all{};
  for (unsigned w = begin; w < begin + teams.warps; ++w) {
    all.first += of_warps[w].first;
    all.second += of_warps[w].second;
  }
  return all;
}

// Returns lane l of a group. `l` is a constant after unrolling.
template <class T>
__device__ float lane_of(const RawGroup<T>& group, int l) {
  return get_quad(group, l / 4).lanes[l % 4];
}

// `beta` may be null. A block's teams have neighbouring rows.
template <class T, int kHeld>
__global__ void __launch_bounds__(kThreads)
    normalize_rows(const T* x, const float* gamma, const float* beta, T* y, float* saved,
                   float epsilon, TokenMatrix m, RowTeams teams) {
  const Member member{teams};
  const std::size_t groups = m.stride / kGroupLanes;
  const auto count = static_cast<float>(m.channels);
  const auto is_channel = [&](unsigned group, int l) {
    return group * kGroupLanes + static_cast<unsigned>(l) < m.channels;
  };
  for (std::size_t first = blockIdx.x; first < teams.blocks(m.rows); first += gridDim.x) {
    const std::size_t row = first * teams.count() + member.team;
    const bool is_inside = row < m.rows;
    RawGroup<T> values[kHeld] = {};
    float sum = 0.F;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const unsigned group = member.group(h);
      if (is_inside && group < groups) values[h] = load_raw(x, row * groups + group);
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) sum += lane_of(values[h], l);  // padding is zero
    }
    const float mean = beta != nullptr ? add_up(teams, {sum, 0.F}).first / count : 0.F;
    float squares = 0.F;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) {
        const float distance = is_channel(member.group(h), l) ? lane_of(values[h], l) - mean : 0.F;
        squares += distance * distance;
      }
    }
    const float scale = 1.F / sqrtf(add_up(teams, {squares, 0.F}).first / count + epsilon);
    if (!is_inside) continue;
    if (member.first == 0) keep(saved, row, beta != nullptr, {.mean = mean, .scale = scale});
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const unsigned group = member.group(h);
      if (group >= groups) continue;
      const Group factors = load_group(gamma, group);
      Group result{};
      if (beta != nullptr) result = load_group(beta, group);
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) {
        const float value = (lane_of(values[h], l) - mean) * scale * factors.lanes[l];
        result.lanes[l] = is_channel(group, l) ? value + result.lanes[l] : 0.F;
      }
      store_group(y, row * groups + group, result);
    }
  }
}

// Most blocks that sum the gradients of gamma and beta, on every device.
constexpr std::size_t kMostChunks = 256;

std::size_t chunks_of(const TokenMatrix& m) {
  return std::min(teams_of(m).blocks(m.rows), kMostChunks);
}

// The gradients of a thread's groups of gamma and beta.
template <int kHeld>
struct VectorSums {
  Group dgamma[kHeld];
  Group dbeta[kHeld];
};

// Adds up a block's sums, team after team, and stores them: a row of gamma's, followed by beta's if
// rows are centred.
template <int kHeld>
__device__ void store_sums(const RowTeams& teams, const Member& member, std::size_t groups,
                           bool is_centred, VectorSums<kHeld>& mine, float* sums) {
  float* const shared = shared_floats();
  const auto add = [shared](Group& own, std::size_t at) {
    const Group before = load_group(shared, at);
#pragma unroll
    for (int l = 0; l < kGroupLanes; ++l) own.lanes[l] += before.lanes[l];
  };
  for (unsigned team = 0; team < teams.count(); ++team) {
    if (team > 0) __syncthreads();
    if (team != member.team) continue;
    float* const to = team + 1 < teams.count() ? shared : sums;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const std::size_t group = member.group(h);
      if (group >= groups) continue;
      if (team > 0) add(mine.dgamma[h], group);
      store_group(to, group, mine.dgamma[h]);
      if (!is_centred) continue;
      if (team > 0) add(mine.dbeta[h], groups + group);
      store_group(to, groups + group, mine.dbeta[h]);
    }
  }
}

// dx = scale (g - mean(g) - n mean(g n)), where g = dy gamma and n = (x - mean) scale. The term
// mean(g) is left out if rows are not centred. dx may be dy. With `accumulates`, dx + that result.
// `sums` has a row per block.
template <class T, int kHeld>
__global__ void __launch_bounds__(kThreads)
    differentiate_rows(const T* x, const T* dy, const float* gamma, const float* saved,
                       bool is_centred, bool accumulates, T* dx, float* sums, TokenMatrix m,
                       RowTeams teams) {
  const Member member{teams};
  const std::size_t groups = m.stride / kGroupLanes;
  const auto count = static_cast<float>(m.channels);
  VectorSums<kHeld> mine{};
  for (std::size_t first = blockIdx.x; first < teams.blocks(m.rows); first += gridDim.x) {
    const std::size_t row = first * teams.count() + member.team;
    const bool is_inside = row < m.rows;
    Statistics of{};
    if (is_inside) of = kept(saved, row, is_centred);
    RawGroup<T> values[kHeld] = {};
    RawGroup<T> slopes[kHeld] = {};
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const unsigned group = member.group(h);
      if (!is_inside || group >= groups) continue;
      values[h] = load_raw(x, row * groups + group);
      slopes[h] = load_raw(dy, row * groups + group);
    }
    float sum = 0.F;
    float product = 0.F;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      Group factors{};  // zeros beside the row, and in its padding
      if (member.group(h) < groups) factors = load_group(gamma, member.group(h));
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) {
        const float dvalue = lane_of(slopes[h], l);
        const float normal = (lane_of(values[h], l) - of.mean) * of.scale;
        mine.dgamma[h].lanes[l] += dvalue * normal;
        mine.dbeta[h].lanes[l] += dvalue;
        sum += dvalue * factors.lanes[l];
        product += dvalue * factors.lanes[l] * normal;
      }
    }
    const RowSums all = add_up(teams, {sum, product});
    const float mean_slope = is_centred ? all.first / count : 0.F;
    const float mean_product = all.second / count;
    if (!is_inside) continue;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const unsigned group = member.group(h);
      if (group >= groups) continue;
      const Group factors = load_group(gamma, group);
      Group result{};
      if (accumulates) result = load_group(dx, row * groups + group);
#pragma unroll
      for (int l = 0; l < kGroupLanes; ++l) {
        const float normal = (lane_of(values[h], l) - of.mean) * of.scale;
        const float slope = lane_of(slopes[h], l) * factors.lanes[l];
        const bool is_channel = group * kGroupLanes + static_cast<unsigned>(l) < m.channels;
        const float value =
            is_channel ? of.scale * (slope - mean_slope - normal * mean_product) : 0.F;
        result.lanes[l] = accumulates ? __fadd_rn(result.lanes[l], as_stored<T>(value)) : value;
      }
      store_group(dx, row * groups + group, result);
    }
  }
  const std::size_t width = (is_centred ? 2 : 1) * m.stride;
  store_sums(teams, member, groups, is_centred, mine, sums + blockIdx.x * width);
}

struct ChunkSum {
  float sum;
  __device__ void merge(const ChunkSum& other) { sum += other.sum; }
};

// A row of kChunkChannels threads for each of kChunkThreads stretches of chunks.
__global__ void __launch_bounds__(kTileThreads)
    sum_chunks(const float* sums, float* gradient, std::size_t width, std::size_t chunks) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  ChunkSum mine{};
  if (i < width) {
#pragma unroll 4
    for (std::size_t chunk = threadIdx.y; chunk < chunks; chunk += blockDim.y) {
      mine.merge({sums[chunk * width + i]});
    }
  }
  merge_down(mine);
  if (i < width && threadIdx.y == 0) gradient[i] = mine.sum;
}

std::size_t gradient_width(const RowNormBackward& op) {
  return (op.is_centred ? 2 : 1) * Layout::padded(op.x.image.channels);
}

Grid row_grid(const RowTeams& teams, std::size_t blocks, std::size_t shared_floats) {
  return {.blocks = dim3{static_cast<unsigned>(blocks)},
          .threads = dim3{kThreads},
          .shared_bytes = teams.count() > 1 ? shared_floats * sizeof(float) : 0};
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RowNormForward& op) {
  const TokenMatrix m = token_matrix(op.x);
  return kernel_of(op, [machine, op, m, teams = teams_of(m)](const auto& operands) {
    const float* const gamma = tensor<const float>(operands.in.parameters);
    const float* const beta = op.is_centred ? gamma + m.stride : nullptr;
    const std::size_t blocks = std::min(teams.blocks(m.rows), kMaxBlocks);
    with_element(machine.precision, [&]<class T>(T) {
      with_held(teams.held, [&]<int kHeld>(std::integral_constant<int, kHeld>) {
        enqueue(machine.stream, row_grid(teams, blocks, 0), normalize_rows<T, kHeld>,
                tensor<const T>(operands.in.x), gamma, beta, tensor<T>(operands.out.y),
                tensor<float>(operands.out.saved), op.epsilon, m, teams);
      });
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RowNormBackward& op) {
  const TokenMatrix m = token_matrix(op.x);
  const auto differentiate = [machine, op, m, teams = teams_of(m)](const auto& operands,
                                                                   const auto& arguments) {
    float* const sums = tensor<float>(arguments.workspace);
    const std::size_t width = gradient_width(op);
    const std::size_t chunks = chunks_of(m);
    with_element(machine.precision, [&]<class T>(T) {
      with_held(teams.held, [&]<int kHeld>(std::integral_constant<int, kHeld>) {
        enqueue(machine.stream, row_grid(teams, chunks, width), differentiate_rows<T, kHeld>,
                tensor<const T>(operands.in.x), tensor<const T>(operands.in.dy),
                tensor<const float>(operands.in.parameters), tensor<const float>(operands.in.saved),
                op.is_centred, op.accumulates, tensor<T>(operands.out.dx), sums, m, teams);
      });
    });
    const auto blocks = static_cast<unsigned>((width + kChunkChannels - 1) / kChunkChannels);
    enqueue(machine.stream,
            {.blocks = dim3{blocks}, .threads = dim3{kChunkChannels, kChunkThreads}}, sum_chunks,
            sums, tensor<float>(operands.out.dparameters), width, chunks);
  };
  return kernel_of(op, differentiate);
}

um::Bytes workspace_of(const Machine& /*machine*/, const RowNormBackward& op) {
  return float_bytes(chunks_of(token_matrix(op.x)) * gradient_width(op));
}

um::Bytes saved_bytes(const Machine& /*machine*/, const RowNormForward& op) {
  return float_bytes(rows_of(op.x).batch * (op.is_centred ? 2 : 1));
}

}  // namespace spillway::cuda
