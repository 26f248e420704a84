// A machine for the cost model: what a device computes, remembers and sends. A description is a JSON file (docs/planner.md);
// `oar distributed calibrate` measures one of the machine it runs on.
//
// Times of collectives follow the α-β model, `latency` of each round of messages plus bytes over `bandwidth`, on the links that
// the group spans. Where a measured curve of the collective on as many devices is given, it is used instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {
namespace planner {

enum class Collective : uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Send };

const char* name_of(Collective collective);

// Devices of one group that is connected by the same links: those in a box, those in a room.
struct Link {
  std::string name;
  int64_t devices = 1;   // of a group; the outermost link connects all
  double latency = 0;    // seconds of a message
  double bandwidth = 1;  // bytes in a second that one device sends while it receives as many
};

// Measured: the time of a collective by the bytes of the whole tensor, ascending.
struct Curve {
  Collective collective = Collective::AllReduce;
  int64_t devices = 2;
  struct Point {
    double bytes = 0, seconds = 0;
  };
  std::vector<Point> points;
};

// Which devices take part: `size` of them, each `stride` numbers after the one before.
struct Group {
  int64_t size = 1, stride = 1;
};

struct Machine {
  std::string name = "machine";
  double flops = 1e11;            // in a second, in sums of products
  double scalar_flops = 1e10;     // … in any other arithmetic
  double bandwidth = 1e10;        // bytes in a second between a device and its memory
  double memory = 16e9;           // bytes of a device
  double product_efficiency = 1;  // what is reached of the flops in products
  double memory_efficiency = 1;   // … of the bandwidth
  double launch = 0;              // seconds that every kernel takes besides
  double overlap =
      0;  // the part of gradients' collectives that backward hides, if it is long enough
  std::vector<Link> links;  // innermost first
  std::vector<Curve> curves;

  // Of a call on one device.
  double time_of(const Cost& cost) const;
  // Of a collective, where `bytes` is the size of the whole tensor on one device: before a reduction, after a gathering, or what
  // a device sends in all.
  double time_of(Collective collective, double bytes, Group group) const;
  // The outermost link that the group needs.
  const Link& link_of(Group group) const;
};

// The devices of a machine whose files say nothing: one of this processor's cores, by rough figures.
Machine default_machine();

Machine parse_machine(std::string_view json);
std::string to_json(const Machine& machine);

// "40GB", "512 MiB", "1e9": bytes. An error names `what` if it is no amount.
double parse_bytes(std::string_view text, std::string_view what);
std::string bytes_text(double bytes);      // "39.5 GB"
std::string seconds_text(double seconds);  // "12.3 ms"

}  // namespace planner
}  // namespace oar
