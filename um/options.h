#pragma once

#include <optional>
#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// Far memory: other RAM, or a file.
struct FarOptions {
  /// Empty for RAM; otherwise a path that does not exist yet, or a folder for the file.
  std::string file;
  /// The bytes of unified memory that will ever be far, if known. RAM for them is taken only when
  /// they leave, too late to report a lack of it.
  std::optional<Bytes> used;
  /// Keeps a checksum in RAM for every 4 KiB of a file, so that a read detects disk errors.
  bool checksums = true;
};

/// The link between near and far memory, with the same limits in both directions.
struct LinkOptions {
  std::optional<Bandwidth> bandwidth;  ///< nullopt: as fast as the machine copies
  Nanoseconds latency{0};              ///< added to each move of a page or copy
};

/// Options of a copy space.
struct CopyOptions {
  Bytes size;  ///< bytes of far memory
  Bytes near;  ///< bytes of near memory
  FarOptions far;
  LinkOptions link;
};

/// How the host device maps managed pages and catches faults.
enum class Paging {
  kAuto,       ///< kUffdMove where the kernel allows it, else kMemfdSegv
  kUffdMove,   ///< userfaultfd with UFFDIO_MOVE (Linux 6.8 or newer)
  kMemfdSegv,  ///< a memfd and SIGSEGV (any Linux)
};

/// Options of a GPU.
struct GpuOptions {
  /// Lets the slab exceed the GPU's free memory less a margin. Some drivers hang the GPU for every
  /// program when they must evict.
  bool oversubscribe = false;
  /// Tells the driver which pages were discarded. Otherwise they stay in place until they are
  /// overwritten: this saves calls, but an eviction writes them back. nullopt: true if
  /// `oversubscribe`.
  std::optional<bool> discards;
  /// Captures a step once and repeats it as a CUDA graph if all its blocks have fixed places.
  /// Otherwise the host launches each step anew.
  bool graph = true;

  [[nodiscard]] bool tells_discards() const { return discards.value_or(oversubscribe); }
};

/// Options of a managed space.
struct ManagedOptions {
  Bytes size;  ///< bytes of the slab and of far memory, a multiple of `page`
  Bytes near;  ///< the most bytes of near memory, a multiple of `page`
  Bytes page;  ///< unit of residency: a power of two, 4 KiB to 2 MiB
  FarOptions far;
  LinkOptions link;
  // Options of the host device only:
  Nanoseconds fault_latency{0};  ///< added to each page fault
  Paging paging = Paging::kAuto;
  /// Fills populated and discarded pages with NaNs, so that a test notices reads that must not
  /// happen.
  bool poison = false;
  /// Promises that every write is declared by a use or faults. If false, each page that has been
  /// near counts as dirty, regardless of advice, and is written back when it leaves.
  bool writes_are_declared = true;
  GpuOptions gpu;
};

}  // namespace spillway::um
