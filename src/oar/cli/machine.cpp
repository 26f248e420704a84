#include "oar/cli/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"

namespace oar::cli {
namespace {

// Empty if the file does not exist: on another system, or outside a container.
std::string read_if_there(const char* path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return {};
  }
}

// The value of the first line "key : value".
std::string_view field(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == key)
      return trim(line.substr(colon + 1));
  }
  return {};
}

std::optional<int64_t> leading_number(std::string_view text) {
  int64_t value = 0;
  text = trim(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

void inspect_cpu(Machine& machine) {
  const std::string info = read_if_there("/proc/cpuinfo");
  const std::string_view model = field(info, "model name");
  machine.cpu = model.empty() ? "unknown" : std::string(model);
  const bool x86 = !field(info, "flags").empty();
  const std::vector<std::string_view> flags =
      split(x86 ? field(info, "flags") : field(info, "Features"), ' ');
  const auto has = [&](std::string_view flag) {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  };
  for (const char* feature :
       {"avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni",
        "amx_bf16", "amx_int8", "asimd", "fphp", "bf16", "i8mm", "sve"})
    if (has(feature)) machine.features.emplace_back(feature);
  machine.has_avx2 = !x86 || (has("avx2") && has("fma") && has("f16c"));
}

void inspect_processors(Machine& machine) {
  machine.processors = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t set;
  machine.usable =
      sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : machine.processors;
  // "200000 100000": microseconds of time per period of microseconds.
  double load[1];
  if (getloadavg(load, 1) == 1) machine.load = load[0];
  const std::string quota = read_if_there("/sys/fs/cgroup/cpu.max");
  const std::vector<std::string_view> parts = split(trim(quota), ' ');
  if (parts.size() == 2) {
    const auto time = leading_number(parts[0]), period = leading_number(parts[1]);
    if (time && period && *period > 0)
      machine.quota = static_cast<double>(*time) / static_cast<double>(*period);
  }
}

void inspect_memory(Machine& machine) {
  const std::string info = read_if_there("/proc/meminfo");
  machine.memory = leading_number(field(info, "MemTotal")).value_or(0) * 1024;
  machine.memory_available = leading_number(field(info, "MemAvailable")).value_or(0) * 1024;
  machine.memory_limit = leading_number(read_if_there("/sys/fs/cgroup/memory.max")).value_or(0);
  if (machine.memory_limit > 0) {
    const int64_t used = leading_number(read_if_there("/sys/fs/cgroup/memory.current")).value_or(0);
    machine.memory_available = std::min(machine.memory_available, machine.memory_limit - used);
  }
}

}  // namespace

Machine inspect_machine() {
  Machine machine;
  inspect_cpu(machine);
  inspect_processors(machine);
  inspect_memory(machine);
  utsname name{};
  if (uname(&name) == 0)
    machine.system = format("{} {} {}", name.sysname, name.release, name.machine);
  return machine;
}

std::string bytes_text(int64_t bytes) {
  static constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? format("{} bytes", bytes) : format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace oar::cli
