#include "src/host/layout/onednn.h"

#include <omp.h>

#include "um/error.h"

namespace spillway::host {
namespace {

// Kernels of oneDNN leave the upper parts of the calling thread's vector registers in use. Each
// instruction of code that knows only the lower ones, as our loops do, then waits for those parts:
// on one machine such loops took four times as long. No compiler may have numbers in those parts
// across the call.
[[gnu::noinline]] void release_upper_registers() {
#ifdef __x86_64__
  static const bool has_them = has_instructions(dnnl::cpu_isa::avx);
  if (has_them) __asm__ volatile("vzeroupper" ::: "memory");
#endif
}

}  // namespace

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

// oneDNN's instruction sets are sets of bits: a newer one holds those of the older ones.
bool has_instructions(dnnl::cpu_isa set) {
  const auto bits = static_cast<unsigned>(set);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

std::string instruction_set() {
  using Isa = dnnl::cpu_isa;
  using Name = std::pair<Isa, const char*>;
  for (const auto& [set, name] :
       {Name{Isa::avx512_core_amx, "avx512_core_amx"},
        Name{Isa::avx512_core_bf16, "avx512_core_bf16"},
        Name{Isa::avx512_core_vnni, "avx512_core_vnni"}, Name{Isa::avx512_core, "avx512_core"},
        Name{Isa::avx2_vnni, "avx2_vnni"}, Name{Isa::avx2, "avx2"}, Name{Isa::avx, "avx"},
        Name{Isa::sse41, "sse41"}}) {
    if (has_instructions(set)) return name;
  }
  return "plain instructions";
}

Dims dims(std::initializer_list<std::size_t> sizes) { return {sizes.begin(), sizes.end()}; }

Desc float_desc(std::initializer_list<std::size_t> sizes, dnnl::memory::format_tag tag) {
  return {dims(sizes), dnnl::memory::data_type::f32, tag};
}

bool multiply(const ProductSizes& sizes, const Matrix& a, const Matrix& b, float* c,
              std::size_t stride, float scale, bool adds) noexcept {
  const auto signed_of = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  const auto letter = [](const Matrix& m) { return m.transposed ? 'T' : 'N'; };
  const dnnl::status status =
      dnnl::sgemm(letter(a), letter(b), signed_of(sizes.rows), signed_of(sizes.columns),
                  signed_of(sizes.inner), scale, a.numbers, signed_of(a.stride), b.numbers,
                  signed_of(b.stride), adds ? 1.F : 0.F, c, signed_of(stride));
  if (omp_in_parallel() != 0) {
    release_upper_registers();
  } else {
#pragma omp parallel
    release_upper_registers();
  }
  return status == dnnl::status::success;
}

void expect_products(bool had_memory) {
  if (had_memory) return;
  throw um::Error{"oneDNN could not multiply two matrices: it had no memory for that"};
}

Desc transposed(const Desc& matrix) { return matrix.permute_axes({1, 0}); }

um::Bytes scratchpad_bytes(const dnnl::primitive_desc_base& primitive) {
  return um::Bytes{primitive.scratchpad_desc().get_size()};
}

Call::Call(const dnnl::engine& engine, dnnl::primitive primitive,
           std::initializer_list<std::pair<int, Desc>> arguments)
    : primitive_{std::move(primitive)}, stream_{engine} {
  for (const auto& [number, desc] : arguments) {
    if (desc.get_size() > 0) {
      arguments_.emplace(number, dnnl::memory(desc, engine, DNNL_MEMORY_NONE));
    }
  }
}

void Call::run(std::initializer_list<std::pair<int, std::byte*>> addresses) {
  for (const auto& [number, address] : addresses) {
    if (const auto argument = arguments_.find(number); argument != arguments_.end()) {
      argument->second.set_data_handle(address);
    }
  }
  primitive_.execute(stream_, arguments_);
  stream_.wait();
#pragma omp parallel
  release_upper_registers();
}

}  // namespace spillway::host
