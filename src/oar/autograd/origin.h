// Where the recorded calls were made: kept for anomaly mode, and while something watches layers.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/host_language.h"
#include "oar/base/timeline.h"

namespace OAR_API oar {

struct Origin {
  LayerPath layer = 0;
  std::vector<SourceLine> lines;  // of the user's code, outermost first; only in anomaly mode

  // "The forward call was made at ..."; empty if nothing is known.
  std::string text() const;
};

// Anomaly mode: nodes know the lines of their forward calls, and a backward that fails names them.
struct AnomalyMode {
  bool enabled = false;
  bool check_nan = true;  // a gradient with NaN is an error
};
AnomalyMode anomaly_mode();
void set_anomaly_mode(AnomalyMode mode);
// Whether nodes know the layers of their forward calls.
void keep_layers(bool keep);

namespace detail {
enum : uint8_t { kLayers = 1, kLines = 2, kCheckNan = 4 };
inline constinit std::atomic<uint8_t> origins{0};
}  // namespace detail

inline bool keeps_origins() {
  return (detail::origins.load(std::memory_order_relaxed) & (detail::kLayers | detail::kLines)) !=
         0;
}
inline bool checks_nan() {
  return (detail::origins.load(std::memory_order_relaxed) & detail::kCheckNan) != 0;
}
Origin current_origin();

}  // namespace oar
