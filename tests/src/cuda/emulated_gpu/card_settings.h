#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace spillway::emulated {

/// When enqueued work is computed. Every order respects streams and events, so a program that
/// waits for what it needs has the same results in each of them.
enum class WorkOrder {
  kEager,    ///< at the call
  kLate,     ///< when something waits for it
  kMoves,    ///< moves at the call, all else late: finds kernels that a move does not wait for
  kCompute,  ///< kernels at the call, moves late: finds moves that a kernel does not wait for
  kAll,      ///< late; once something is waited for, all other work, too
  kChance,   ///< by a seeded random generator, both at calls and at waits
};

/// The kind of device.
enum class CardKind {
  kDiscrete,    ///< unified memory moves by hints and by page faults
  kNoHints,     ///< concurrentManagedAccess is 0, as on WSL
  kIntegrated,  ///< shares the processor's memory, as a Jetson does
  kCoherent,    ///< discrete and cache-coherent with the processor, as a GH200 is
};

/// The settings of the emulated GPU, which SPILLWAY_EMULATED_GPU holds: "order=late,devices=2".
struct CardSettings {
  WorkOrder order = WorkOrder::kEager;
  std::uint32_t seed = 1;  ///< of kChance and of `fail_rate`
  int devices = 1;
  std::size_t memory = 8ULL << 30U;  ///< bytes of each device
  CardKind kind = CardKind::kDiscrete;
  int driver = 13000;              ///< CUDA version of the driver; below 13000 without discards
  std::size_t misalignment = 512;  ///< device memory begins this far behind a page
  bool is_dry = false;             ///< enqueues and counts work without computing it
  bool finds_races = false;        ///< reports accesses that no stream or event orders
  bool ignores_hints = false;      ///< prefetches move nothing; pages fault instead
  bool traces = false;             ///< prints every call
  bool goes_on = false;            ///< counts mistakes and leaks without ending the process
  bool keeps = false;              ///< objects may live until the process ends
  std::string fail;                ///< the call that fails: a site of the report, or NAME:N
  bool is_lost = false;            ///< the device is lost with that call: all later calls fail
  bool invalidates = false;        ///< a failed call invalidates the capture of its thread
  double fail_rate = 0;            ///< the part of all calls that fail, by chance
  std::string report;              ///< file for the report in JSON; empty: none
  bool lists_sites = false;        ///< the report has all places that call CUDA, which takes time
};

/// Reads the settings from the environment. Ends the process with a sentence if one is unknown.
[[nodiscard]] CardSettings read_card_settings();

}  // namespace spillway::emulated
